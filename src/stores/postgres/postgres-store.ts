import { KitError } from "../../base/kit-error.ts";
import { likePatterns } from "../../base/like-patterns.ts";
import { PostgresDatabase, type PostgresPlace } from "../../postgres/database.ts";
import { isPostgresUrl } from "../../postgres/is-postgres-url.ts";
import { migrate, quotedSchema } from "../../postgres/migrate.ts";
import type {
  SessionEntry,
  SessionInfo,
  SessionKey,
  TouchedSessionPage,
} from "../../protocol/session-entry.ts";
import type { StoredWorkspace, WorkspaceCommit, WorkspaceStore } from "../../protocol/workspace-store.ts";
import type { AppendRequest, SessionListing, SessionStore } from "../contract.ts";
import { decodeEntry } from "../entry-text.ts";
import { conflict, placeOf, staleWriter, toInfo, toTouchedPage, usedStepMs } from "../session-row.ts";
import { type Statements, sessionMigrations, statementsFor } from "./session-tables.ts";
import { SessionWrites } from "./session-writes.ts";

/** The database: an address, or a pool that the caller owns and closes. */
export type PostgresSessionStoreOptions = {
  /** The schema of kit's tables, created if it is missing; default "kit". */
  readonly schema?: string;
  /**
   * Milliseconds without an answer before kit checks the database over another connection. If the check gets no answer
   * within the same time, all calls fail with `store_unavailable` at once until it does. Default 2,000.
   */
  readonly patienceMs?: number;
} & PostgresPlace;

/**
 * Sessions in a Postgres database, for several machines at once.
 *
 * The first call connects, and creates or upgrades the tables. Every call throws `unavailable` if the database cannot be
 * reached or the package `pg` is missing; the next call tries again.
 *
 * @example
 * import { PostgresSessionStore } from "kit/stores/postgres";
 *
 * const store = new PostgresSessionStore({ url: "postgres://kit@localhost:5432/kit" });
 */
export class PostgresSessionStore implements SessionStore {
  readonly #database: PostgresDatabase;
  /** Quoted. */
  readonly #schema: string;
  readonly #statements: Statements;
  readonly #writes: SessionWrites;
  readonly workspaces: WorkspaceStore;

  /** Throws `invalid_request` for an address that is not a Postgres address. */
  constructor(options: PostgresSessionStoreOptions) {
    if ("url" in options && !isPostgresUrl(options.url)) {
      throw new KitError({
        code: "invalid_request",
        message: "The address of the session store is not a Postgres address.",
        hint: "Write postgres://user:password@host:5432/name, with special characters percent-encoded.",
      });
    }
    const schema = quotedSchema(options.schema ?? "kit");
    this.#schema = schema;
    this.#statements = statementsFor(schema);
    this.#database = new PostgresDatabase({
      ...options,
      store: "The session store",
      prepare: (pool) => migrate(pool, sessionMigrations(schema)),
      toConflict: conflict,
    });
    this.#writes = new SessionWrites(this.#database, this.#statements);
    this.workspaces = new PostgresWorkspaces(this.#database, schema);
  }

  async append(request: AppendRequest): Promise<void> {
    await this.#writes.append(request);
  }

  async claim(instance: Pick<SessionKey, "agent" | "instance_id">, fence: number): Promise<void> {
    await this.#writes.claim(instance, fence);
  }

  async read(key: SessionKey, after = 0): Promise<readonly SessionEntry[]> {
    if (this.#writes.takeUnused(key)) return [];
    const rows = await this.#database.query(this.#statements.read, [...toValues(key), after]);
    return rows.map((row) => decodeEntry(String(row.data)));
  }

  async info(key: SessionKey): Promise<SessionInfo | undefined> {
    const [row] = await this.#database.query(this.#statements.list, toValues(key));
    return row === undefined ? undefined : toInfo(row);
  }

  async list(filter: {
    readonly agent: string;
    readonly instance_id?: string;
  }): Promise<readonly SessionInfo[]> {
    const rows = await this.#database.query(this.#statements.list, [
      filter.agent,
      filter.instance_id ?? null,
      null,
    ]);
    return rows.map(toInfo);
  }

  async delete(key: SessionKey): Promise<void> {
    // Foreign keys delete the entries and descendants too.
    await this.#database.query(this.#statements.delete, toValues(key));
    await this.#forgetFence(key);
  }

  async listAll(listing: SessionListing): Promise<TouchedSessionPage> {
    const { page, total } = listStatements(this.#schema, listing);
    const [rows, counted] = await Promise.all([
      this.#database.query(page.sql, page.values, { plansAnew: true }),
      listing.count === true ? this.#database.query(total.sql, total.values, { plansAnew: true }) : undefined,
    ]);
    const result = toTouchedPage(rows, listing);
    return counted === undefined ? result : { ...result, total: Number(counted[0]?.count) };
  }

  async deleteUntouched(key: SessionKey, before: number): Promise<boolean> {
    const rows = await this.#database.query(this.#statements.deleteUntouched, [...toValues(key), before]);
    if (rows.length === 0) return false;
    await this.#forgetFence(key);
    await this.#database.query(this.#statements.forgetRun, [key.instance_id]);
    return true;
  }

  async keepText(name: string, text: string): Promise<void> {
    await this.#database.query(this.#statements.keepText, [name, text]);
  }

  async readText(name: string): Promise<string | undefined> {
    const [row] = await this.#database.query(this.#statements.readText, [name]);
    return row === undefined ? undefined : String(row.text);
  }

  async pruneTexts(before: number): Promise<number> {
    return (await this.#database.query(this.#statements.pruneTexts, [before])).length;
  }

  /** Closes its own connections; a pool passed by the caller stays open. */
  async close(): Promise<void> {
    await this.#database.close();
  }

  /** An instance without sessions needs no fence: its next owner claims it before writing. */
  async #forgetFence({ agent, instance_id }: SessionKey): Promise<void> {
    await this.#database.query(this.#statements.forgetFence, [agent, instance_id]);
  }
}

function toValues(key: SessionKey | undefined): unknown[] {
  return key === undefined ? [null, null, null] : [key.agent, key.instance_id, key.session];
}

/** Workspaces in the database of the sessions. */
class PostgresWorkspaces implements WorkspaceStore {
  readonly #database: PostgresDatabase;
  readonly #schema: string;

  /** `schema` is a quoted identifier. */
  constructor(database: PostgresDatabase, schema: string) {
    this.#database = database;
    this.#schema = schema;
  }

  async read(key: SessionKey): Promise<StoredWorkspace | undefined> {
    const [row] = await this.#query(
      "SELECT version, manifest FROM $s.workspaces WHERE agent = $1 AND instance_id = $2 AND session = $3",
      toValues(key),
    );
    return row === undefined ? undefined : { version: Number(row.version), manifest: String(row.manifest) };
  }

  async readPiece(key: SessionKey, name: string): Promise<Uint8Array | undefined> {
    const [row] = await this.#query(
      "SELECT data FROM $s.workspace_pieces WHERE agent = $1 AND instance_id = $2 AND session = $3 AND name = $4",
      [...toValues(key), name],
    );
    return row?.data as Uint8Array | undefined;
  }

  async writePiece(key: SessionKey, name: string, data: Uint8Array): Promise<void> {
    await this.#query(
      "INSERT INTO $s.workspace_pieces (agent, instance_id, session, name, data) VALUES ($1, $2, $3, $4, $5) ON CONFLICT DO NOTHING",
      [...toValues(key), name, Buffer.from(data)],
    );
  }

  async commit(key: SessionKey, commit: WorkspaceCommit): Promise<void> {
    const { expected, manifest, pieces, fence, lease_on = key } = commit;
    const lease = [lease_on.agent, lease_on.instance_id];
    const change =
      expected === 0
        ? `INSERT INTO $s.workspaces (agent, instance_id, session, version, manifest)
           SELECT $1, $2, $3, 1, $4 FROM passes WHERE ok AND $5::bigint = 0 ON CONFLICT DO NOTHING RETURNING 1`
        : `UPDATE $s.workspaces SET version = version + 1, manifest = $4 FROM passes
           WHERE ok AND agent = $1 AND instance_id = $2 AND session = $3 AND version = $5::bigint RETURNING 1`;
    // `FOR SHARE` locks the fence until the change is written, so that a concurrent claim waits.
    const rows = await this.#query(
      `WITH gate AS MATERIALIZED (
         SELECT fence FROM $s.fences WHERE agent = $8 AND instance_id = $9 AND $7::bigint IS NOT NULL FOR SHARE
       ), passes AS (SELECT NOT EXISTS (SELECT 1 FROM gate WHERE fence > $7::bigint) AS ok),
       changed AS (${change}),
       unneeded AS (
         DELETE FROM $s.workspace_pieces WHERE agent = $1 AND instance_id = $2 AND session = $3
           AND NOT (name = ANY($6::text[])) AND EXISTS (SELECT 1 FROM changed)
       )
       SELECT 1 FROM changed`,
      [...toValues(key), manifest, expected, [...pieces], fence ?? null, ...lease],
    );
    if (rows.length > 0) return;
    const claimed = await this.#query(
      "SELECT fence FROM $s.fences WHERE agent = $1 AND instance_id = $2",
      lease,
    );
    throw claimed.some((row) => fence !== undefined && fence < Number(row.fence))
      ? staleWriter()
      : conflict();
  }

  async remove(key: SessionKey): Promise<void> {
    await this.#query(
      `WITH pieces AS (DELETE FROM $s.workspace_pieces WHERE agent = $1 AND instance_id = $2 AND session = $3)
       DELETE FROM $s.workspaces WHERE agent = $1 AND instance_id = $2 AND session = $3`,
      toValues(key),
    );
  }

  async #query(sql: string, values: unknown[]): ReturnType<PostgresDatabase["query"]> {
    return await this.#database.query(sql.replaceAll("$s.", `${this.#schema}.`), values);
  }
}

interface Statement {
  readonly sql: string;
  readonly values: unknown[];
}

/** The statements of a listing in a quoted schema: for its page, which has one row more than `limit`, and for its `total`. */
function listStatements(
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
