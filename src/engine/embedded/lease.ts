import { randomUUID } from "node:crypto";
import { type Clock, elapsedOf } from "../../base/clock.ts";
import { KitError } from "../../base/kit-error.ts";
import { isBusy, type StoreFaults } from "../../sqlite/database-file.ts";
import { type Database, openFile, query, rollback } from "../../sqlite/statements.ts";
import type { WaitClock } from "../shared/durable-time.ts";
import type { Lease } from "../shared/engine-base.ts";

export interface LeaseHolder extends Lease {
  readonly isHeld: boolean;
  /** Whether the lease is free, or its holder dead or late, as it seems without a transaction. */
  isFree(): boolean;
  /** In a transaction: takes the lease when it is free, or its holder is dead or late. True when it is ours now. */
  acquire(): boolean;
  /** Whether no other process has taken the lease since. */
  isOurs(): boolean;
  /** In a transaction: says that we live. False when the lease is another's. */
  renew(): boolean;
  /** In a transaction: throws `lease_lost` unless the lease is ours, of the given fence where there is one. */
  check(fence?: number): void;
  /** After the transaction: what `acquire` gained counts from now on. */
  begin(): void;
  /** Tells those who work that the lease is gone, or may be. */
  lose(): void;
  /** In a transaction: gives the lease back, so that another process need not wait. */
  release(): void;
}

export interface LeaseOptions {
  readonly clock: Clock;
  /** How long a holder may be silent before another takes over. */
  readonly ttlMs: number;
  readonly lock: ProcessLock;
}

interface LeaseRow {
  readonly fence: number;
  readonly owner: string | null;
  readonly locked: number;
  readonly expires_at: number;
}

/** The lease of an engine's folder: a row that its owner has to renew, with a fence that only rises. */
export function createLease(database: Database, options: LeaseOptions): LeaseHolder {
  const { clock, ttlMs, lock } = options;
  const owner = randomUUID();
  const read = query<LeaseRow>(database, "SELECT fence, owner, locked, expires_at FROM lease");
  const take = query<Pick<LeaseRow, "fence">>(
    database,
    "UPDATE lease SET fence = fence + 1, owner = ?, locked = ?, expires_at = ? RETURNING fence",
  );
  const extend = query(database, "UPDATE lease SET locked = ?, expires_at = ? WHERE owner = ? AND fence = ?");
  const free = query(
    database,
    "UPDATE lease SET owner = NULL, locked = 0, expires_at = 0 WHERE owner = ? AND fence = ?",
  );

  let fence = 0;
  let taken = 0;
  let watched: { readonly row: LeaseRow; readonly since: number } | undefined;
  let tenure = new AbortController();
  tenure.abort(lost());

  function isFree(): boolean {
    const row = read.get();
    // A row that still names this process was given up by mistake: no other process has claimed the lease.
    if (row === undefined || row.owner === null || row.owner === owner) return true;
    return isSilent(row) || (row.locked === 1 && isUnlocked());
  }

  /**
   * Whether the holder has not renewed its lease for as long as it lasts, by what this process has counted: what the
   * row says of the time of day may be wrong by hours after the clock is set.
   */
  function isSilent(row: LeaseRow): boolean {
    const now = elapsedOf(clock);
    const isSame = watched?.row.fence === row.fence && watched.row.expires_at === row.expires_at;
    if (watched === undefined || !isSame) watched = { row, since: now };
    return now - watched.since >= ttlMs;
  }

  /** The holder had the lock: when it can be had, the holder is dead. */
  function isUnlocked(): boolean {
    if (!lock.tryHold()) return false;
    lock.release();
    return true;
  }

  function isOurs(expected: number): boolean {
    const row = read.get();
    return row?.owner === owner && row.fence === expected;
  }

  return {
    get fence() {
      return fence;
    },
    get signal() {
      return tenure.signal;
    },
    get isHeld() {
      return !tenure.signal.aborted;
    },
    isFree,
    isOurs: () => isOurs(fence),
    acquire() {
      if (!isFree()) return false;
      taken = Number(take.get(owner, Number(lock.tryHold()), clock.now() + ttlMs)?.fence);
      return true;
    },
    begin() {
      fence = taken;
      tenure = new AbortController();
    },
    renew() {
      // A frozen process that this one took over from may have woken, and let the lock go.
      return extend.run(Number(lock.tryHold()), clock.now() + ttlMs, owner, fence) > 0;
    },
    check(expected = fence) {
      if (tenure.signal.aborted || !isOurs(expected)) throw lost();
    },
    lose() {
      lock.release();
      tenure.abort(lost());
    },
    release() {
      free.run(owner, fence);
    },
  };
}

function lost(): KitError {
  return new KitError({
    code: "lease_lost",
    message: "Another process does the work of this engine now.",
    meta: { retry_after_s: 1 },
  });
}

/** The lock of a process that is the only one: another instance of it is dead. */
export const soleProcess: ProcessLock = {
  isHeld: true,
  tryHold: () => true,
  release: () => undefined,
  close: () => undefined,
};

/** A lock that the system itself lets go when its process ends, in whatever way. */
interface ProcessLock {
  readonly isHeld: boolean;
  /** Whether it is held now. False when a process that lives holds it, frozen or not. */
  tryHold(): boolean;
  release(): void;
  close(): void;
}

/**
 * SQLite's own lock of a file (fcntl, LockFileEx), through a transaction that is never written: it works
 * where a process number does not, between containers and after a restart of one.
 */
export function createProcessLock(file: string | undefined, faults: StoreFaults): ProcessLock {
  const database = openFile(file ?? ":memory:", { timeoutMs: 0 });
  return {
    get isHeld() {
      return database.isTransaction;
    },
    tryHold() {
      if (database.isTransaction) return true;
      try {
        database.exec("BEGIN EXCLUSIVE");
        return true;
      } catch (error) {
        if (isBusy(error)) return false;
        throw faults.toError(error);
      }
    },
    release() {
      rollback(database);
    },
    close: () => database.close(),
  };
}

/**
 * The time that durable waits are counted in. It goes on as evenly as the machine does, asleep or awake, over restarts
 * and changes of hands, whatever is done to the time of day; so a sleep of 20 s takes 20 s. While no process
 * runs, the time of day is all there is to count by: then it never goes back, and a clock that was set forward counts
 * as time that has passed.
 */
export interface Timeline extends WaitClock {
  /** Reads the position that another process has stored. */
  resume(): void;
  /** Stores the position. Call it in a transaction. */
  mark(): void;
  /**
   * By how many milliseconds the time of day was set since the last look: forward, back (negative), or 0. What is less than
   * 1.5 s is none: a time service corrects it bit by bit.
   */
  jump(): number;
  /** Keeps all records until a time of the timeline. Call it in a transaction. */
  keepUntil(ms: number): void;
  /** Whether retention may remove old records now. */
  mayRemove(): boolean;
}

interface TimelineRow {
  readonly time: number;
  readonly wall: number;
  readonly kept_until: number;
}

const leastJumpMs = 1_500;

export function createTimeline(database: Database, clock: Clock): Timeline {
  const read = query<TimelineRow>(database, "SELECT time, wall, kept_until FROM timeline");
  const write = query(
    database,
    `INSERT INTO timeline (id, time, wall) VALUES (1, ?, ?)
     ON CONFLICT (id) DO UPDATE SET time = excluded.time, wall = excluded.wall`,
  );
  const keepUntil = query(database, "UPDATE timeline SET kept_until = max(kept_until, ?) WHERE id = 1");
  /** The timeline minus the process's own count, in ms. */
  let ahead = 0;
  /** The time of day minus the timeline, in ms. */
  let offset = 0;

  const counted = (): number => elapsedOf(clock) + (clock.asleep?.() ?? 0);
  const now = (): number => Math.floor(ahead + counted());

  /** By how much the time of day has left this since the last look; 0 while that is little. */
  function drift(): number {
    const by = clock.now() - now() - offset;
    return Math.abs(by) < leastJumpMs ? 0 : by;
  }

  function resume(): void {
    const row = read.get();
    const wall = clock.now();
    const away = row === undefined ? 0 : Math.max(0, wall - row.wall);
    ahead = (row === undefined ? wall : row.time + away) - counted();
    offset = wall - now();
  }

  resume();
  return {
    sleep: clock.sleep,
    now,
    toWall: (ms) => Math.round(ms + offset + drift()),
    resume,
    mark: () => void write.run(now(), Math.round(clock.now())),
    jump() {
      const by = drift();
      offset += by;
      return by;
    },
    keepUntil: (ms) => void keepUntil.run(Math.ceil(ms)),
    mayRemove() {
      return drift() <= 0 && Number(read.get()?.kept_until ?? 0) <= now();
    },
  };
}
