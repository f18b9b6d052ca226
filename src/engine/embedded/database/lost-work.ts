import { existsSync } from "node:fs";
import { dirname, join, relative } from "node:path";
import { type Clock, elapsedOf, isoTime } from "../../../base/clock.ts";
import { KitError } from "../../../base/kit-error.ts";
import { nearby } from "../../../sqlite/database-file.ts";
import { createProgressRow, type ProgressRow } from "../../../sqlite/progress.ts";
import { type Database, openFile } from "../../../sqlite/statements.ts";

/** Notices that one of kit's databases lacks transactions that another one had seen. */
export interface LostWork {
  /** Call it for each commit of work; the next `mark` counts it. True if it is time for a mark, in the same commit. */
  worked(): boolean;
  /** Compares the databases. Call it in the transaction that gains the lease: then no other process marks. */
  check(): void;
  /** Returns what `check` has found, until the process ends. */
  problem(): KitError | undefined;
  /**
   * Marks in each database what the others have reached, if anything was written since the last mark. `commit` runs a write in a
   * fenced transaction of the engine's database. Does nothing as long as no caller has read what `check` has found: the next
   * process finds it again.
   */
  mark(commit: Commit): Promise<void>;
  close(): void;
}

type Commit = <Value>(write: () => Value) => Promise<Value>;

/** Work causes a mark at most this often. */
const markEveryMs = 200;

interface LostWorkOptions {
  /** The folder of `engine.db`. */
  readonly folder: string;
  /** The other databases. A missing one is left out. */
  readonly others: readonly string[];
  readonly database: Database;
  readonly clock: Clock;
}

/** A file that lacks what was written to it between two times. */
interface Loss {
  readonly file: string;
  readonly transactions: number;
  readonly from: number | undefined;
  readonly to: number;
}

export function createLostWork({ folder, others, database, clock }: LostWorkOptions): LostWork {
  const file = join(folder, "engine.db");
  const pairs = others.map((other) => new Pair({ database, file, other, now: () => clock.now() }));
  let hasWorked = false;
  let found: KitError | undefined;
  let isReported = true;
  let isMarking = false;
  let markedAt = Number.NEGATIVE_INFINITY;
  return {
    worked() {
      hasWorked = true;
      return elapsedOf(clock) - markedAt >= markEveryMs;
    },
    check() {
      const losses = pairs.flatMap((pair) => pair.losses());
      if (losses.length === 0) return;
      found = lostError(losses);
      isReported = false;
    },
    problem() {
      isReported = true;
      return found;
    },
    async mark(commit) {
      if (!isReported || isMarking) return;
      markedAt = elapsedOf(clock);
      const add = Number(hasWorked) as 0 | 1;
      const changed = pairs.map((pair) => pair.count());
      if (add === 0 && !changed.includes(true)) return;
      hasWorked = false;
      isMarking = true;
      try {
        const noted = await commit(() => pairs.map((pair) => pair.note(add)));
        for (const [index, pair] of pairs.entries()) pair.confirm(noted[index]);
      } catch (error) {
        hasWorked ||= add === 1;
        throw error;
      } finally {
        isMarking = false;
      }
    },
    close() {
      for (const pair of pairs) pair.close();
    },
  };
}

/**
 * The engine's database and another one. A row never claims more than the other database has committed: the other one counts first,
 * then the engine notes that count together with its own, and then the other one notes the engine's.
 */
class Pair {
  readonly #file: string;
  readonly #other: string;
  readonly #now: () => number;
  readonly #own: ProgressRow;
  #connection: Connection | undefined;
  /** The state of the other database that was counted last. */
  #version: number | undefined;
  #isBehind = false;
  /** The count of the other database that the engine has not noted yet. */
  #unnoted: number | undefined;

  constructor(options: PairOptions) {
    this.#file = options.file;
    this.#other = options.other;
    this.#now = options.now;
    this.#own = createProgressRow(options.database, relative(dirname(options.file), options.other));
  }

  losses(): Loss[] {
    const own = this.#own.read();
    let other: Row;
    try {
      const connection = this.#open();
      if (connection === undefined) return [];
      other = connection.row.read();
    } catch {
      // Its own store reports why it cannot be read.
      return [];
    }
    const losses = [
      ...missing(this.#other, { has: other, claim: own }),
      ...missing(this.#file, { has: own, claim: other }),
    ];
    // The next mark replaces the claims, also if nothing was written since.
    this.#isBehind = losses.length > 0;
    return losses;
  }

  /** Counts what was committed to the other database; false if nothing was, or if it is locked or cannot be written. */
  count(): boolean {
    try {
      const connection = this.#open();
      const version = connection?.version();
      if (connection === undefined || (version === this.#version && !this.#isBehind)) return false;
      this.#unnoted = connection.row.write({ add: 1, seen: undefined, at: this.#now() });
      this.#version = version;
      return true;
    } catch {
      return false;
    }
  }

  /** Call it in a transaction of the engine's database. Returns the count for `confirm`. */
  note(add: 0 | 1): number | undefined {
    if (this.#connection === undefined || (add === 0 && this.#unnoted === undefined)) return undefined;
    const count = this.#own.write({ add, seen: this.#unnoted, at: this.#now() });
    return add === 1 || this.#isBehind ? count : undefined;
  }

  /** Call it after the transaction of `note`, with its result. */
  confirm(noted: number | undefined): void {
    this.#unnoted = undefined;
    if (noted === undefined) return;
    try {
      this.#connection?.row.write({ add: 0, seen: noted, at: this.#now() });
      this.#isBehind = false;
    } catch {
      // Locked, or without space: the next mark notes a later count.
    }
  }

  close(): void {
    this.#connection?.close();
    this.#connection = undefined;
  }

  #open(): Connection | undefined {
    // SQLite would create a missing file.
    if (this.#connection === undefined && existsSync(this.#other)) {
      this.#connection = connect(this.#other, relative(dirname(this.#other), this.#file));
      this.#version = this.#connection?.version();
    }
    return this.#connection;
  }
}

interface PairOptions {
  readonly database: Database;
  readonly file: string;
  readonly other: string;
  readonly now: () => number;
}

/** A connection of its own: it commits only what it counts, and sees when any other one has committed. */
interface Connection {
  readonly row: ProgressRow;
  version(): number;
  close(): void;
}

function connect(file: string, other: string): Connection | undefined {
  const database = openFile(file, { timeoutMs: 0 });
  try {
    // The store's own connection decides when the log is written to the disk.
    database.exec("PRAGMA synchronous = NORMAL");
    const version = database.prepare("PRAGMA data_version");
    return {
      row: createProgressRow(database, other),
      version: () => Number(version.get()?.data_version),
      close: () => database.close(),
    };
  } catch {
    // The store has not created its tables yet.
    database.close();
    return undefined;
  }
}

type Row = ReturnType<ProgressRow["read"]>;

function missing(file: string, { has, claim }: { readonly has: Row; readonly claim: Row }): Loss[] {
  const count = has?.count ?? 0;
  if (claim === undefined || claim.seen <= count) return [];
  return [{ file, transactions: claim.seen - count, from: has?.at, to: claim.at }];
}

function lostError(losses: readonly Loss[]): KitError {
  const files = [...new Set(losses.map(({ file }) => file))].map((file) => {
    const ofFile = losses.filter((loss) => loss.file === file);
    const from = ofFile.some((loss) => loss.from === undefined)
      ? undefined
      : Math.max(...ofFile.map((loss) => loss.from ?? 0));
    const count = Math.max(...ofFile.map(({ transactions }) => transactions));
    const to = isoTime(Math.max(...ofFile.map((loss) => loss.to)));
    const since = from === undefined ? "everything" : `what kit wrote after ${isoTime(from)}`;
    return `${nearby(file)} lacks ${since} (at least ${count} ${count === 1 ? "transaction" : "transactions"} until ${to})`;
  });
  return new KitError({
    code: "unavailable",
    message: `Stored work is lost: ${files.join("; ")}.`,
    hint: "A file was cut, deleted or replaced by an older one, or the power failed. To get the work back, stop kit and restore all files of .kit from one backup. Otherwise kit continues with what is left: receipts, sessions and events from that time can be unknown.",
  });
}
