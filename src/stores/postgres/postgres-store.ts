import { KitError } from "../../base/kit-error.ts";
import { PostgresDatabase, type PostgresPlace } from "../../postgres/database.ts";
import { isPostgresUrl } from "../../postgres/is-postgres-url.ts";
import { migrate, quotedSchema } from "../../postgres/migrate.ts";
import type {
  SessionEntry,
  SessionInfo,
  SessionKey,
  TouchedSessionPage,
} from "../../protocol/session-entry.ts";
import type { WorkspaceStore } from "../../protocol/workspace-store.ts";
import type { AppendRequest, SessionListing, SessionStore } from "../contract.ts";
import { decodeEntry, encodeEntry } from "../entry-text.ts";
import { conflict, placeOf, staleWriter, toInfo, toTouchedPage } from "../session-row.ts";
import { PostgresWorkspaces } from "./postgres-workspaces.ts";
import { type Statements, sessionMigrations, statementsFor } from "./session-tables.ts";

/** Which database: an address, or a pool that the caller keeps and ends. */
export type PostgresSessionStoreOptions = {
  /** The schema of kit's tables, made when it is missing; default "kit". */
  readonly schema?: string;
  /**
   * Milliseconds without an answer before kit asks the database, over another connection, whether it is there. Where it
   * does not answer that within the same time, all calls are `store_unavailable` at once, until it does. Default 2,000.
   */
  readonly patienceMs?: number;
} & PostgresPlace;

/**
 * Sessions in a Postgres database, for several machines at once.
 *
 * Nothing is opened before the first call, which also makes the tables or brings them up to date. Every call
 * throws `unavailable` where the database, or the package `pg`, is not there; the next one tries again.
 *
 * @example
 * import { PostgresSessionStore } from "kit/stores/postgres";
 *
 * const store = new PostgresSessionStore({ url: "postgres://kit@localhost:5432/kit" });
 */
export class PostgresSessionStore implements SessionStore {
  readonly #database: PostgresDatabase;
  readonly #statements: Statements;
  readonly workspaces: WorkspaceStore;

  /** Throws `invalid_request` for an address that is none of Postgres. */
  constructor(options: PostgresSessionStoreOptions) {
    if ("url" in options && !isPostgresUrl(options.url)) {
      throw new KitError({
        code: "invalid_request",
        message: "The address of the session store is not a Postgres address.",
        hint: "Write postgres://user:password@host:5432/name, with special characters percent-encoded.",
      });
    }
    const schema = quotedSchema(options.schema ?? "kit");
    this.#statements = statementsFor(schema);
    this.#database = new PostgresDatabase({
      ...options,
      store: "The session store",
      prepare: (pool) => migrate(pool, sessionMigrations(schema)),
      toConflict: conflict,
    });
    this.workspaces = new PostgresWorkspaces(this.#database, schema);
  }

  async append(request: AppendRequest): Promise<void> {
    const { key, expected, entries, parent, input, fence, lease_on = key } = request;
    const { append, create } = this.#statements;
    const data = entries.map(encodeEntry);
    const values = [...toValues(key), expected, data, input ?? null];
    const lease = [fence ?? null, lease_on.agent, lease_on.instance_id];
    const rows =
      expected === 0
        ? await this.#database.query(create, [
            ...values,
            new Date().toISOString(),
            ...toValues(parent),
            ...lease,
          ])
        : await this.#database.query(append, [...values, ...lease]);
    if (rows.length > 0) return;
    throw fence !== undefined && (await this.#isStale(lease_on, fence)) ? staleWriter() : conflict();
  }

  async claim(
    { agent, instance_id }: Pick<SessionKey, "agent" | "instance_id">,
    fence: number,
  ): Promise<void> {
    await this.#database.query(this.#statements.claim, [agent, instance_id, fence]);
  }

  async read(key: SessionKey, after = 0): Promise<readonly SessionEntry[]> {
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
    // The foreign keys take the entries and the sessions below along.
    await this.#database.query(this.#statements.delete, toValues(key));
    await this.#forgetFence(key);
  }

  async listAll(page: SessionListing): Promise<TouchedSessionPage> {
    const { limit, cursor, order, agent = null, instance_id = null } = page;
    const { listOldest, listNewest } = this.#statements;
    const place = cursor === undefined && order === "newest" ? Number.MAX_SAFE_INTEGER : placeOf(cursor);
    const rows = await this.#database.query(order === "newest" ? listNewest : listOldest, [
      place,
      limit + 1,
      agent,
      instance_id,
    ]);
    return toTouchedPage(rows, limit);
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

  /** Ends the connections of its own; a pool that was given stays open. */
  async close(): Promise<void> {
    await this.#database.close();
  }

  /** With its last session, an instance needs no fence: its next owner claims it before it writes. */
  async #forgetFence({ agent, instance_id }: SessionKey): Promise<void> {
    await this.#database.query(this.#statements.forgetFence, [agent, instance_id]);
  }

  async #isStale(
    { agent, instance_id }: Pick<SessionKey, "agent" | "instance_id">,
    fence: number,
  ): Promise<boolean> {
    const rows = await this.#database.query(this.#statements.fence, [agent, instance_id]);
    return rows.some((row) => fence < Number(row.fence));
  }
}

function toValues(key: SessionKey | undefined): unknown[] {
  return key === undefined ? [null, null, null] : [key.agent, key.instance_id, key.session];
}
