import { likePatterns } from "../../base/like-patterns.ts";
import type { TouchedSessionPage } from "../../protocol/session-entry.ts";
import type { Database, Statement } from "../../sqlite/statements.ts";
import type { SessionListing } from "../contract.ts";
import { placeOf, toTouchedPage, usedStepMs } from "../session-row.ts";
import { selectSessions } from "./session-tables.ts";

type Value = string | number;

/** Lists the sessions of a database. Each order and filter has an index, or reads only the rows of sessions, which are short. */
export function createSessionList(database: Database): (listing: SessionListing) => TouchedSessionPage {
  const statements = new Map<string, Statement>();
  const prepare = (sql: string): Statement => {
    const statement = statements.get(sql) ?? database.prepare(sql);
    statements.set(sql, statement);
    return statement;
  };
  return (listing) => {
    const { limit, order, cursor, count } = listing;
    const { conditions, values } = conditionsOf(listing);
    const where = conditions.length === 0 ? "" : `WHERE ${conditions.join(" AND ")}`;
    const place = placeOf(cursor, order);
    const { sql, from } =
      order === "recent"
        ? { sql: "(s.used_at, s.id) < (?, ?) ORDER BY s.used_at DESC, s.id DESC", from: [place.at, place.id] }
        : order === "newest"
          ? { sql: "s.id < ? ORDER BY s.id DESC", from: [place.id] }
          : { sql: "s.id > ? ORDER BY s.id", from: [place.id] };
    // SQLite may have to sort all sessions that match: their last entries are then read for the page only.
    const ids = `SELECT s.id FROM sessions s ${where === "" ? "WHERE" : `${where} AND`} ${sql} LIMIT ?`;
    const page = `${selectSessions} WHERE s.id IN (${ids}) ${sql.slice(sql.indexOf("ORDER BY"))}`;
    const result = toTouchedPage(prepare(page).all(...values, ...from, limit + 1), listing);
    if (count !== true) return result;
    const total = `SELECT count(*) AS total FROM sessions s ${where}`;
    return { ...result, total: Number(prepare(total).get(...values)?.total) };
  };
}

interface Conditions {
  readonly conditions: readonly string[];
  readonly values: readonly Value[];
}

/** SQL: the time of the last entry of a session `s`. */
const touched =
  "(SELECT at FROM entries WHERE id > s.id << 24 AND id < (s.id + 1) << 24 ORDER BY id DESC LIMIT 1)";

function conditionsOf(listing: SessionListing): Conditions {
  const { agent, instance_id, parents_only, state, search, since, until, only, except } = listing;
  const conditions: string[] = [];
  const values: Value[] = [];
  const add = (condition: string, ...its: Value[]): void => {
    conditions.push(condition);
    values.push(...its);
  };
  if (agent !== undefined) add("s.agent = ?", agent);
  if (instance_id !== undefined) add("s.instance_id = ?", instance_id);
  if (parents_only === true) add("s.parent_id IS NULL");
  // The second condition is that of the partial index, which SQLite otherwise does not use.
  if (state !== undefined) add(state === "idle" ? "s.state = ?" : "s.state = ? AND s.state <> 'idle'", state);
  // Most sessions are decided by `used_at`, which is a little more than a second behind at most; the others by their last entry.
  if (since !== undefined)
    add(`(s.used_at >= ? OR s.used_at > ? AND ${touched} >= ?)`, since, since - 2 * usedStepMs, since);
  if (until !== undefined)
    add(`s.used_at < ? AND (s.used_at <= ? OR ${touched} < ?)`, until, until - 2 * usedStepMs, until);
  if (search !== undefined) {
    const words =
      "(coalesce(s.title, '') || char(10) || s.agent || char(10) || s.instance_id || char(10) || s.session)";
    const patterns = likePatterns(search);
    add(`(${patterns.map(() => `${words} LIKE ? ESCAPE '\\'`).join(" OR ")})`, ...patterns);
  }
  // By the numbers of their rows, which SQLite looks up once for all sessions.
  const ids = `(SELECT k.id FROM json_each(?) AS j JOIN sessions AS k
    ON k.agent = j.value ->> 0 AND k.instance_id = j.value ->> 1 AND k.session = j.value ->> 2)`;
  if (only !== undefined) add(`s.id IN ${ids}`, toJson(only));
  if (except !== undefined) add(`s.id NOT IN ${ids}`, toJson(except));
  return { conditions, values };
}

function toJson(keys: NonNullable<SessionListing["only"]>): string {
  return JSON.stringify(keys.map(({ agent, instance_id, session }) => [agent, instance_id, session]));
}
