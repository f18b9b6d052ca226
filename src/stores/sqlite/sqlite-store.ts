import type { DatabaseSync, SQLInputValue, StatementResultingChanges, StatementSync } from "node:sqlite";
import { KitError } from "../../base/kit-error.ts";
import type { SessionEntry, SessionInfo, SessionKey } from "../../protocol/session-entry.ts";
import { conflict } from "../conflict.ts";
import type { AppendRequest, MaybePromise, SessionStore } from "../contract.ts";
import { decodeEntry, encodeEntry } from "../entry-text.ts";
import { toInfo } from "../session-row.ts";
import { LockedWrites } from "./locked-writes.ts";
import { maxPosition, openDatabase } from "./open-database.ts";
import { isBusy, toSqliteError } from "./sqlite-error.ts";

export interface SqliteSessionStoreOptions {
  /** The database file; `":memory:"` for none. Its folder must exist. */
  readonly file: string;
  /**
   * `normal` (default): a crash of the process loses nothing, a power cut may lose the last
   * transactions. `full`: neither does, at the cost of an fsync per append.
   */
  readonly durability?: "normal" | "full";
}

const readPatienceMs = 1_000;

/** Sessions whose row ids are kept in memory, some 150 bytes each. */
const maxRemembered = 10_000;

interface Statements {
  readonly begin: StatementSync;
  readonly commit: StatementSync;
  readonly find: StatementSync;
  readonly create: StatementSync;
  readonly insert: StatementSync;
  readonly read: StatementSync;
  readonly list: StatementSync;
  readonly delete: StatementSync;
}

/**
 * Sessions in one SQLite file, shared safely by several processes. Methods throw `unavailable` where the file
 * cannot be read or written: the disk is full, another process holds it for long.
 */
export class SqliteSessionStore implements SessionStore {
  readonly #database: DatabaseSync;
  readonly #statements: Statements;
  readonly #writes = new LockedWrites();
  // Row ids of sessions seen lately: an append then is inserts only.
  readonly #ids = new Map<string, number>();

  constructor(options: SqliteSessionStoreOptions) {
    this.#database = openDatabase(options.file, options.durability ?? "normal");
    const prepare = (sql: string): StatementSync => this.#database.prepare(sql);
    this.#statements = {
      begin: prepare("BEGIN IMMEDIATE"),
      commit: prepare("COMMIT"),
      find: prepare(
        `SELECT id, ${position("sessions.id")} AS position
         FROM sessions WHERE agent = ? AND instance_id = ? AND session = ?`,
      ),
      create: prepare(
        "INSERT INTO sessions (agent, instance_id, session, created_at, parent_id) VALUES (?, ?, ?, ?, ?)",
      ),
      insert: prepare(
        "INSERT INTO entries SELECT ?1 << 24 | ?2, ?3 WHERE EXISTS (SELECT 1 FROM sessions WHERE id = ?1)",
      ),
      read: prepare("SELECT data FROM entries WHERE id > ?1 << 24 | ?2 AND id < (?1 + 1) << 24 ORDER BY id"),
      list: prepare(
        `SELECT s.agent, s.instance_id, s.session, s.created_at, p.agent AS parent_agent,
                p.instance_id AS parent_instance_id, p.session AS parent_session,
                ${position("s.id")} AS position
         FROM sessions s LEFT JOIN sessions p ON p.id = s.parent_id
         WHERE s.agent = ?1 AND (?2 IS NULL OR s.instance_id = ?2) AND (?3 IS NULL OR s.session = ?3) ORDER BY s.id`,
      ),
      delete: prepare("DELETE FROM sessions WHERE agent = ? AND instance_id = ? AND session = ?"),
    };
    this.#statements.read.setReturnArrays(true);
  }

  /** Waits only while another process holds the file; so does `delete`. */
  append(request: AppendRequest): MaybePromise<void> {
    return this.#writes.run(() => this.#append(request));
  }

  #append(request: AppendRequest): void {
    const { entries, expected } = request;
    const known = this.#ids.get(nameOf(request.key));
    const only = entries[0];
    if (known !== undefined && entries.length === 1 && only !== undefined && expected > 0) {
      // One row is one transaction by itself. The primary key refuses a position that is taken, the
      // statement a session that was deleted; a position cannot be skipped, because `expected` comes
      // from a writer that has seen all rows before it.
      this.#insert(known, expected + 1, only);
      return;
    }
    this.#statements.begin.run();
    try {
      const id = expected === 0 ? this.#create(request) : this.#findAt(request.key, expected);
      let position = expected;
      for (const entry of entries) {
        position += 1;
        this.#insert(id, position, entry);
      }
      this.#statements.commit.run();
      this.#remember(request.key, id);
    } catch (error) {
      if (this.#database.isTransaction) this.#database.exec("ROLLBACK");
      throw error;
    }
  }

  read(key: SessionKey, after = 0): readonly SessionEntry[] {
    const rows = this.#look((): unknown[] => {
      const id = this.#find(key)?.id;
      return id === undefined ? [] : this.#statements.read.all(id, after);
    });
    const entries: SessionEntry[] = [];
    for (const row of rows) entries.push(decodeEntry(String((row as unknown[])[0])));
    return entries;
  }

  info(key: SessionKey): SessionInfo | undefined {
    const row = this.#look(() => this.#statements.list.get(key.agent, key.instance_id, key.session));
    return row === undefined ? undefined : toInfo(row);
  }

  list(filter: { readonly agent: string; readonly instance_id?: string }): readonly SessionInfo[] {
    const { agent, instance_id = null } = filter;
    return this.#look(() => this.#statements.list.all(agent, instance_id, null)).map(toInfo);
  }

  delete(key: SessionKey): MaybePromise<void> {
    return this.#writes.run(() => {
      // A trigger takes the entries along, the foreign key the sessions below.
      this.#statements.delete.run(key.agent, key.instance_id, key.session);
      this.#ids.clear();
    });
  }

  close(): void {
    this.#ids.clear();
    if (this.#database.isOpen) this.#database.close();
  }

  /** Readers have to wait only in the moment in which another process repairs the file, or is the last to close it. */
  #look<Value>(read: () => Value): Value {
    try {
      return read();
    } catch (error) {
      if (!isBusy(error)) throw toSqliteError(error);
    }
    try {
      this.#database.exec(`PRAGMA busy_timeout = ${readPatienceMs}`);
      return read();
    } catch (error) {
      throw toSqliteError(error);
    } finally {
      this.#database.exec("PRAGMA busy_timeout = 0");
    }
  }

  #insert(id: number, position: number, entry: SessionEntry): void {
    if (position > maxPosition) throw full();
    if (this.#change(this.#statements.insert, [id, position, encodeEntry(entry)]).changes === 0)
      throw conflict();
  }

  #find(key: SessionKey): { readonly id: number; readonly position: number } | undefined {
    const row = this.#statements.find.get(key.agent, key.instance_id, key.session);
    if (row === undefined) return undefined;
    const id = Number(row.id);
    this.#remember(key, id);
    return { id, position: Number(row.position) };
  }

  #remember(key: SessionKey, id: number): void {
    // Sessions come and go for as long as a server runs. The others are found again by their name.
    if (this.#ids.size >= maxRemembered) this.#ids.clear();
    this.#ids.set(nameOf(key), id);
  }

  #findAt(key: SessionKey, expected: number): number {
    const found = this.#find(key);
    if (found?.position !== expected) throw conflict();
    return found.id;
  }

  /** A session without entries is none, so that one that is there already is a conflict. */
  #create({ key, parent }: AppendRequest): number {
    const above = parent === undefined ? null : (this.#find(parent)?.id ?? null);
    const { agent, instance_id, session } = key;
    const now = new Date().toISOString();
    return Number(
      this.#change(this.#statements.create, [agent, instance_id, session, now, above]).lastInsertRowid,
    );
  }

  #change(statement: StatementSync, values: SQLInputValue[]): StatementResultingChanges {
    try {
      return statement.run(...values);
    } catch (error) {
      if (error instanceof Error && error.message.includes("constraint")) throw conflict(error);
      throw error;
    }
  }
}

/** SQL for how many entries a session has. */
function position(session: string): string {
  return `coalesce((SELECT max(id) & ${maxPosition} FROM entries WHERE id > ${session} << 24 AND id < (${session} + 1) << 24), 0)`;
}

function full(): KitError {
  return new KitError({
    code: "conflict",
    message: `The session is full: it has ${maxPosition} entries.`,
    hint: "Go on in a new session.",
  });
}

function nameOf(key: SessionKey): string {
  return `${key.agent}\u0000${key.instance_id}\u0000${key.session}`;
}
