import { likePatterns } from "../../base/like-patterns.ts";
import type { SessionListing } from "../contract.ts";
import { placeOf, usedStepMs } from "../session-row.ts";

interface Statement {
  readonly sql: string;
  readonly values: unknown[];
}

/** The statements of a listing in a quoted schema: for its page, which has one row more than `limit`, and for its `total`. */
export function listStatements(
  schema: string,
  listing: SessionListing,
): { readonly page: Statement; readonly total: Statement } {
  const values: unknown[] = [];
  const addValue = (value: unknown): string => `$${values.push(value)}`;
  const conditions = conditionsOf(listing, addValue);
  const where = (all: readonly string[]): string => (all.length === 0 ? "" : `WHERE ${all.join(" AND ")}`);
  const total = {
    sql: `SELECT count(*) AS count FROM ${schema}.sessions s ${where(conditions)}`,
    values: [...values],
  };
  const { order, cursor, limit } = listing;
  const place = placeOf(cursor, order);
  const after =
    order === "recent"
      ? `(s.used_at, s.id) < (${addValue(place.at)}::bigint, ${addValue(place.id)}::bigint)`
      : `s.id ${order === "newest" ? "<" : ">"} ${addValue(place.id)}::bigint`;
  const sorted = { recent: "s.used_at DESC, s.id DESC", newest: "s.id DESC", oldest: "s.id" }[
    order ?? "oldest"
  ];
  const sql = `
    SELECT s.id, s.agent, s.instance_id, s.session, s.created_at, s.position, s.touched_at, s.used_at, s.title, s.state,
           s.error, s.tokens, s.cost, p.agent AS parent_agent, p.instance_id AS parent_instance_id, p.session AS parent_session
    FROM ${schema}.sessions s LEFT JOIN ${schema}.sessions p ON p.id = s.parent_id
    ${where([...conditions, after])} ORDER BY ${sorted} LIMIT ${addValue(limit + 1)}::bigint`;
  return { page: { sql, values }, total };
}

function conditionsOf(listing: SessionListing, addValue: (value: unknown) => string): string[] {
  const { agent, instance_id, parents_only, state, search, since, until, only, except } = listing;
  const conditions: string[] = [];
  if (agent !== undefined) conditions.push(`s.agent = ${addValue(agent)}`);
  if (instance_id !== undefined) conditions.push(`s.instance_id = ${addValue(instance_id)}`);
  if (parents_only === true) conditions.push("s.parent_id IS NULL");
  if (state !== undefined) conditions.push(`s.state = ${addValue(state)}`);
  if (since !== undefined)
    conditions.push(
      `s.used_at > ${addValue(since - usedStepMs)}::bigint`,
      `s.touched_at >= ${addValue(since)}::bigint`,
    );
  if (until !== undefined) conditions.push(`s.touched_at < ${addValue(until)}::bigint`);
  if (search !== undefined) {
    const words = `concat_ws(E'\\n', s.title, s.agent, s.instance_id, s.session)`;
    conditions.push(`${words} ILIKE ANY (${addValue(likePatterns(search))}::text[])`);
  }
  const keys = (sessions: NonNullable<SessionListing["only"]>): string =>
    `(SELECT * FROM unnest(${addValue(sessions.map((key) => key.agent))}::text[],
      ${addValue(sessions.map((key) => key.instance_id))}::text[], ${addValue(sessions.map((key) => key.session))}::text[]))`;
  if (only !== undefined) conditions.push(`(s.agent, s.instance_id, s.session) IN ${keys(only)}`);
  if (except !== undefined) conditions.push(`(s.agent, s.instance_id, s.session) NOT IN ${keys(except)}`);
  return conditions;
}
