import type { KitError } from "../../base/kit-error.ts";
import type {
  SessionEntry,
  SessionInfo,
  SessionKey,
  TouchedSessionPage,
} from "../../protocol/session-entry.ts";
import { sessionName } from "../../protocol/session-name.ts";
import type { WorkspaceStore } from "../../protocol/workspace-store.ts";
import { DatabaseFile, isBusy, isFileFault, LockedWrites, StoreFaults } from "../../sqlite/database-file.ts";
import { createTransaction, type Database, type Transaction } from "../../sqlite/statements.ts";
import type { AppendRequest, MaybePromise, SessionListing, SessionStore } from "../contract.ts";
import { decodeEntry, encodeEntry } from "../entry-text.ts";
import { conflict, staleWriter, toErrorText, toInfo, toStoredSummary, usedStepMs } from "../session-row.ts";
import {
  applyChange,
  emptySummary,
  type StoredSummary,
  type SummaryChange,
  summarize,
} from "../session-summary.ts";
import { createSessionList } from "./session-list.ts";
import {
  maxPosition,
  openDatabase,
  orConflict,
  prepareStatements,
  type SessionStatements,
  storeFullError,
} from "./session-tables.ts";
import { SqliteWorkspaces } from "./sqlite-workspaces.ts";

export interface SqliteSessionStoreOptions {
  /** The database file; `":memory:"` for none. Its folder must exist. */
  readonly file: string;
  /**
   * `normal` (default): a crash of the process loses nothing, but a power failure can lose the last transactions. `full`:
   * neither loses anything, at the cost of one fsync per transaction.
   */
  readonly durability?: "normal" | "full";
}

const readPatienceMs = 1_000;
/** Interval of the check for a deleted file, which costs a system call. Writes within it can be lost with the file. */
const checkMs = 10;

/** The most pages that one deletion returns to the disk: some megabytes, in a few milliseconds. */
const maxFreedPages = 1_024;

/** Sessions whose row id and position are cached in memory, some 200 bytes each. */
const maxCached = 10_000;

interface KnownSession {
  /** The id of its row. */
  readonly id: number;
  /** The number of entries, as far as this process knows. */
  position: number;
  summary: StoredSummary;
  /** `used_at` of its row. */
  usedAt: number;
}

/** The entries to append at once. */
interface NewEntries {
  readonly text: string;
  /** The text of the second entry. */
  readonly next?: string | undefined;
  readonly input: string | undefined;
  readonly summary: StoredSummary;
  /** The time, in ms since 1970. */
  readonly at: number;
}

interface DueAppend {
  readonly request: AppendRequest;
  readonly resolve: () => void;
  readonly reject: (reason: unknown) => void;
}

/**
 * Sessions in one SQLite file, which several processes can share. Methods throw `unavailable` if the file cannot be read
 * or written, for example because the disk is full or another process holds a lock too long.
 *
 * @example
 * import { createAgent } from "kit";
 * import { SqliteSessionStore } from "kit/stores/sqlite";
 *
 * const store = new SqliteSessionStore({ file: ".kit/sessions.db" });
 * export default createAgent(() => ({ instructions: "Answer briefly.", store }));
 */
export class SqliteSessionStore implements SessionStore {
  readonly #database: Database;
  readonly #file: DatabaseFile;
  readonly #statements: SessionStatements;
  readonly #transaction: Transaction;
  readonly #faults = new StoreFaults({
    store: "The session store",
    hint: "Check the disk that holds the session store.",
    repair: "Restore its file from a backup.",
  });
  readonly #writes = new LockedWrites(this.#faults);
  readonly #workspaces: SqliteWorkspaces;
  readonly #list: ReturnType<typeof createSessionList>;
  readonly workspaces: WorkspaceStore;
  #queuedAppends: DueAppend[] = [];
  // A cache of recently used sessions, whose appends need no lookup.
  readonly #knownSessions = new Map<string, KnownSession>();
  /** The latest time used, so that sessions do not look older if the clock is set back. */
  #now = 0;

  /** Uses `database` instead of opening `options.file`, if it is passed. */
  constructor(options: SqliteSessionStoreOptions, database?: Database) {
    this.#database = openDatabase(database ?? options.file, options.durability ?? "normal");
    this.#file = new DatabaseFile({ store: "The session store", file: options.file });
    this.#transaction = createTransaction(this.#database);
    this.#workspaces = new SqliteWorkspaces(this.#database, this.#writes);
    this.workspaces = this.#workspaces;
    this.#statements = prepareStatements(this.#database);
    this.#list = createSessionList(this.#database);
  }

  /**
   * Resolves once the entries are in the file. All appends of one turn of the event loop, of any sessions, share one
   * transaction; a refused append does not affect the others.
   */
  append(request: AppendRequest): Promise<void> {
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    if (this.#queuedAppends.length === 0) setImmediate(this.#writeDue);
    this.#queuedAppends.push({ request, resolve, reject });
    return promise;
  }

  readonly #writeDue = (): void => {
    const appends = this.#queuedAppends;
    if (appends.length === 0) return;
    this.#queuedAppends = [];
    const refuse = (error: unknown): void => {
      for (const { reject } of appends) reject(error);
    };
    try {
      this.#writes.run(() => this.#writeTogether(appends))?.catch(refuse);
    } catch (error) {
      refuse(error);
    }
  };

  /** Writes all appends in one transaction. Throws if the transaction fails; then none of them is in the file. */
  #writeTogether(appends: readonly DueAppend[]): void {
    const [only] = appends;
    if (appends.length === 1 && only !== undefined && this.#appendRows(only.request)) {
      this.#file.check(checkMs);
      only.resolve();
      return;
    }
    const refused = new Map<DueAppend, unknown>();
    try {
      this.#transaction(() => {
        for (const append of appends) {
          try {
            this.#append(append.request);
          } catch (error) {
            if (isFileFault(error)) throw error;
            refused.set(append, error);
          }
        }
      });
      this.#file.check(checkMs);
    } catch (error) {
      // The cache has positions of the rolled-back transaction.
      this.#knownSessions.clear();
      throw error;
    }
    for (const append of appends) {
      if (refused.has(append)) append.reject(refused.get(append));
      else append.resolve();
    }
  }

  /**
   * Appends one entry or two with one statement, which is a transaction of its own. Returns false if the append needs several.
   * Two are the results of a turn's tools and the next answer.
   */
  #appendRows({ key, expected, entries, input, fence }: AppendRequest): boolean {
    if (fence !== undefined) return false;
    const session = this.#knownSessions.get(sessionName(key));
    const [first, second, ...others] = entries;
    if (session?.position !== expected || first === undefined || others.length > 0) return false;
    const summary = applyChange(session.summary, summarize(entries, session.summary.title !== null));
    if (this.#changesRow(session, summary)) return false;
    const next = second === undefined ? undefined : encodeEntry(second);
    const at = this.#time();
    this.#insert(session, { text: encodeEntry(first), next, input, summary, at });
    session.position = expected + entries.length;
    session.summary = summary;
    return true;
  }

  /**
   * Call in a transaction. A refused append changes nothing, because the first row already fails: the primary key refuses
   * a position that another process has used, the unique index a recorded input, and the statement a deleted session.
   */
  #append(request: AppendRequest): void {
    const { key, expected, entries, fence, lease_on = key } = request;
    if (expected + entries.length > maxPosition) throw storeFullError();
    if (fence !== undefined) this.#checkFence(lease_on, fence);
    // Before the entries: their time must not be earlier.
    const usedAt = this.#time();
    const texts = entries.map(encodeEntry);
    const change = summarize(entries);
    const session = expected === 0 ? this.#create(request, change) : this.#findAt(key, expected);
    const summary = expected === 0 ? session.summary : applyChange(session.summary, change);
    let { input } = request;
    for (const text of texts) {
      this.#insert(session, { text, input, summary, at: this.#time() });
      session.position += 1;
      input = undefined;
    }
    if (this.#changesRow(session, summary)) {
      const { title, state, error } = summary;
      session.usedAt = usedAt;
      this.#statements.change.run(title, state, toErrorText(error), usedAt, session.id);
    }
    session.summary = summary;
  }

  /**
   * Appends one entry or two with one statement. Throws `conflict` for a position that another process has used, a recorded
   * input, a deleted session or a full one; then it has appended nothing.
   */
  #insert(
    { id, position }: Pick<KnownSession, "id" | "position">,
    { text, next, input, summary, at }: NewEntries,
  ): void {
    const { insert, insertTwo } = this.#statements;
    if (position + (next === undefined ? 1 : 2) > maxPosition) throw storeFullError();
    const row = [id, position + 1, text, input ?? null, at, summary.tokens, summary.cost] as const;
    let inserted: ReturnType<typeof insert.run>;
    try {
      inserted = next === undefined ? insert.run(...row) : insertTwo.run(...row, next);
    } catch (error) {
      throw orConflict(error);
    }
    if (inserted.changes === 0) throw conflict();
  }

  /** Whether an append with this summary changes the row of its session. */
  #changesRow({ summary, usedAt }: KnownSession, { title, state, error }: StoredSummary): boolean {
    const isSame = title === summary.title && state === summary.state && error === summary.error;
    return !isSame || this.#time() - usedAt >= usedStepMs;
  }

  #time(): number {
    this.#now = Math.max(this.#now, Date.now());
    return this.#now;
  }

  #checkFence({ agent, instance_id }: Pick<SessionKey, "agent" | "instance_id">, fence: number): void {
    const row: unknown = this.#statements.fence.get(agent, instance_id);
    const [claimed] = Object.values((row ?? {}) as Record<string, unknown>);
    if (claimed !== undefined && fence < Number(claimed)) throw staleWriter();
  }

  async claim(
    { agent, instance_id }: Pick<SessionKey, "agent" | "instance_id">,
    fence: number,
  ): Promise<void> {
    await this.#writes.run(() => {
      this.#statements.claim.run(agent, instance_id, fence);
    });
  }

  read(key: SessionKey, after = 0): readonly SessionEntry[] {
    const rows = this.#readAttached((): unknown[] => {
      const id = this.#find(key)?.id;
      return id === undefined ? [] : this.#statements.read.all(id, after);
    });
    const entries: SessionEntry[] = [];
    for (const row of rows) entries.push(decodeEntry(String((row as unknown[])[0])));
    return entries;
  }

  info(key: SessionKey): SessionInfo | undefined {
    const row = this.#readAttached(() => this.#statements.list.get(key.agent, key.instance_id, key.session));
    return row === undefined ? undefined : toInfo(row);
  }

  list(filter: { readonly agent: string; readonly instance_id?: string }): readonly SessionInfo[] {
    const { agent, instance_id = null } = filter;
    return this.#readAttached(() => this.#statements.list.all(agent, instance_id, null)).map(toInfo);
  }

  delete(key: SessionKey): MaybePromise<void> {
    this.#writeDue();
    return this.#writes.run(() => {
      // A trigger deletes the entries, and the foreign key the descendants. An instance without sessions needs no fence:
      // its next owner claims it before writing.
      this.#transaction(() => {
        this.#statements.delete.run(key.agent, key.instance_id, key.session);
        this.#workspaces.removeNow(key);
        this.#statements.forgetFence.run(key.agent, key.instance_id);
      });
      this.#knownSessions.clear();
      this.#file.check(checkMs);
    });
  }

  listAll(listing: SessionListing): TouchedSessionPage {
    return this.#readAttached(() => this.#list(listing));
  }

  async deleteUntouched(key: SessionKey, before: number): Promise<boolean> {
    this.#writeDue();
    let deleted = false;
    await this.#writes.run(() => {
      const { agent, instance_id, session } = key;
      const { deleteUntouched, forgetFence, forgetRun } = this.#statements;
      deleted = this.#transaction(() => {
        if (deleteUntouched.run(agent, instance_id, session, before).changes !== 1) return false;
        this.#workspaces.removeNow(key);
        forgetFence.run(agent, instance_id);
        forgetRun.run(instance_id);
        return true;
      });
      if (!deleted) return;
      this.#knownSessions.clear();
      this.#file.check(checkMs);
    });
    // Files of an older kit keep their size and reuse their free pages.
    if (deleted)
      await this.#writes.run(() => this.#database.exec(`PRAGMA incremental_vacuum(${maxFreedPages})`));
    return deleted;
  }

  async keepText(name: string, text: string): Promise<void> {
    await this.#writes.run(() => {
      this.#statements.keepText.run(name, text, Date.now());
    });
  }

  readText(name: string): string | undefined {
    const row = this.#readAttached(() => this.#statements.readText.get(name));
    return row === undefined ? undefined : String(row.text);
  }

  async pruneTexts(before: number): Promise<number> {
    let removed = 0;
    await this.#writes.run(() => {
      removed = Number(this.#statements.pruneTexts.run(before).changes);
    });
    return removed;
  }

  problem(): KitError | undefined {
    return this.#file.problem();
  }

  close(): void {
    this.#writeDue();
    this.#knownSessions.clear();
    if (this.#database.isOpen) this.#database.close();
  }

  /** Readers wait only while another process repairs the file, or is the last one to close it. */
  #readAttached<Value>(read: () => Value): Value {
    this.#file.check(checkMs);
    try {
      return read();
    } catch (error) {
      if (!isBusy(error)) throw this.#faults.toError(error);
    }
    try {
      this.#database.exec(`PRAGMA busy_timeout = ${readPatienceMs}`);
      return read();
    } catch (error) {
      throw this.#faults.toError(error);
    } finally {
      this.#database.exec("PRAGMA busy_timeout = 0");
    }
  }

  #find(key: SessionKey): KnownSession | undefined {
    const row = this.#statements.find.get(key.agent, key.instance_id, key.session);
    if (row === undefined) return undefined;
    const { id, position, used_at } = row;
    const summary = toStoredSummary(row);
    return this.#remember(key, {
      id: Number(id),
      position: Number(position),
      usedAt: Number(used_at),
      summary,
    });
  }

  #remember(key: SessionKey, session: KnownSession): KnownSession {
    // Clear the cache, so that it does not grow for ever; sessions are looked up again by name.
    if (this.#knownSessions.size >= maxCached) this.#knownSessions.clear();
    this.#knownSessions.set(sessionName(key), session);
    return session;
  }

  #findAt(key: SessionKey, expected: number): KnownSession {
    const session = this.#knownSessions.get(sessionName(key));
    if (session?.position === expected) return session;
    const row = this.#find(key);
    if (row?.position !== expected) throw conflict();
    return row;
  }

  /** Creates a session; an existing one is a conflict, because sessions without entries do not exist. */
  #create({ key, parent }: AppendRequest, change: SummaryChange): KnownSession {
    const parentId = parent === undefined ? null : (this.#find(parent)?.id ?? null);
    const { agent, instance_id, session } = key;
    const created = new Date().toISOString();
    const summary = applyChange(emptySummary, change);
    const { title, state, error } = summary;
    const usedAt = this.#time();
    const row = [agent, instance_id, session, created, parentId, title, state, toErrorText(error), usedAt];
    try {
      const { lastInsertRowid } = this.#statements.create.run(...row);
      return this.#remember(key, { id: Number(lastInsertRowid), position: 0, summary, usedAt });
    } catch (error) {
      throw orConflict(error);
    }
  }
}
