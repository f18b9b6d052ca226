import { randomUUID } from "node:crypto";
import { type Clock, elapsedOf } from "../../base/clock.ts";
import { isBusy, type StoreFaults } from "../../sqlite/database-file.ts";
import { type Database, openFile, query, rollback } from "../../sqlite/statements.ts";
import type { WaitClock } from "../shared/durable-time.ts";
import { type Lease, leaseLost } from "../shared/engine-base.ts";

export interface LeaseHolder extends Lease {
  readonly isHeld: boolean;
  /** Whether the last holder died before this tenure: it neither released the lease nor lives on without it. */
  readonly holderDied: boolean;
  /** Whether the lease is free, or its holder dead or silent; checked without a transaction. */
  isFree(): boolean;
  /** Takes the lease if it is free, or its holder dead or silent. True if this process holds it now. Call it in a transaction. */
  acquire(): boolean;
  /** Whether no other process has taken the lease since. */
  isOurs(): boolean;
  /** Extends the lease. False if another process holds it. Call it in a transaction. */
  renew(): boolean;
  /** Throws `lease_lost` unless this process holds the lease, with `fence` if given. Call it in a transaction. */
  check(fence?: number): void;
  /** Starts the tenure that `acquire` gained. Call it after the transaction. */
  begin(): void;
  /** Fires the signal: the lease is lost, or may be. */
  lose(): void;
  /** Releases the lease, so that another process need not wait. Call it in a transaction. */
  release(): void;
}

export interface LeaseOptions {
  readonly clock: Clock;
  /** How long a holder can be silent before another process takes over. */
  readonly ttlMs: number;
  readonly lock: ProcessLock;
}

interface LeaseRow {
  readonly fence: number;
  readonly owner: string | null;
  readonly locked: number;
  readonly expires_at: number;
}

/** The lease of an engine's folder: a row that its holder must renew, with a fence that only rises. */
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

  /** The fence that `acquire` gained. */
  let nextFence = 0;
  let watched: { readonly row: LeaseRow; readonly since: number } | undefined;
  let tenure = new AbortController();
  tenure.abort(leaseLost());

  function vacancy(): "released" | "dead" | "silent" | undefined {
    const row = read.get();
    // A row that names this process was given up by mistake: no other process has claimed the lease.
    if (row === undefined || row.owner === null || row.owner === owner) return "released";
    if (row.locked === 1 && isUnlocked()) return "dead";
    if (!isSilent(row)) return undefined;
    // A silent holder that has its lock lives: it is frozen, or too busy.
    return row.locked === 1 ? "silent" : "dead";
  }

  /**
   * Whether the holder has not renewed its lease for `ttlMs`, measured by this process: the time in the row can be wrong by
   * hours after the machine's clock was set.
   */
  function isSilent(row: LeaseRow): boolean {
    const now = elapsedOf(clock);
    const isSame = watched?.row.fence === row.fence && watched.row.expires_at === row.expires_at;
    if (watched === undefined || !isSame) watched = { row, since: now };
    return now - watched.since >= ttlMs;
  }

  /** The holder has the process lock while it lives: if this process can get the lock, the holder is dead. */
  function isUnlocked(): boolean {
    if (!lock.tryHold()) return false;
    lock.release();
    return true;
  }

  function isOurs(expected: number): boolean {
    const row = read.get();
    return row?.owner === owner && row.fence === expected;
  }

  const holder: LeaseHolder & { fence: number; signal: AbortSignal; holderDied: boolean } = {
    fence: 0,
    signal: tenure.signal,
    holderDied: false,
    get isHeld() {
      return !tenure.signal.aborted;
    },
    isFree: () => vacancy() !== undefined,
    isOurs: () => isOurs(holder.fence),
    acquire() {
      const reason = vacancy();
      if (reason === undefined) return false;
      holder.holderDied = reason === "dead";
      nextFence = Number(take.get(owner, Number(lock.tryHold()), clock.now() + ttlMs)?.fence);
      return true;
    },
    begin() {
      holder.fence = nextFence;
      tenure = new AbortController();
      holder.signal = tenure.signal;
    },
    renew() {
      // Tries to get the lock again: an earlier holder that was frozen may have woken and released it.
      return extend.run(Number(lock.tryHold()), clock.now() + ttlMs, owner, holder.fence) > 0;
    },
    check(expected = holder.fence) {
      if (tenure.signal.aborted || !isOurs(expected)) throw leaseLost();
    },
    lose() {
      lock.release();
      tenure.abort(leaseLost());
    },
    release() {
      free.run(owner, holder.fence);
    },
  };
  return holder;
}

/** The lock of a process that is the only user of its store: an earlier holder is always dead. */
export const soleProcess: ProcessLock = {
  isHeld: true,
  tryHold: () => true,
  release: () => undefined,
  close: () => undefined,
};

/** A lock that the system releases when its process ends, even after a crash. */
interface ProcessLock {
  readonly isHeld: boolean;
  /** Tries to get the lock; whether this process holds it now. False if another live process, frozen or not, holds it. */
  tryHold(): boolean;
  release(): void;
  close(): void;
}

/**
 * SQLite's lock of a file (fcntl, LockFileEx), held by a transaction that never writes. Unlike a process id, it also works
 * between containers and after the restart of a container.
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
 * The time base of durable waits. It advances evenly while the machine is awake or asleep, across restarts and changes of
 * the lease holder, and ignores changes of the machine's clock; so a sleep of 20 s takes 20 s. Time without a running
 * process is measured by the machine's clock: the timeline never goes back then, and a clock that was set forward counts as
 * passed time.
 */
export interface Timeline extends WaitClock {
  /** Reads the position that another process has stored. */
  resume(): void;
  /** Stores the position. Call it in a transaction. */
  mark(): void;
  /**
   * By how many milliseconds the machine's clock was set since the last call: forward, back (negative), or 0. Less than
   * 1.5 s counts as 0: a time service makes such corrections in small steps.
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

const minJumpMs = 1_500;

export function createTimeline(database: Database, clock: Clock): Timeline {
  const read = query<TimelineRow>(database, "SELECT time, wall, kept_until FROM timeline");
  const write = query(
    database,
    `INSERT INTO timeline (id, time, wall) VALUES (1, ?, ?)
     ON CONFLICT (id) DO UPDATE SET time = excluded.time, wall = excluded.wall`,
  );
  const keepUntil = query(database, "UPDATE timeline SET kept_until = max(kept_until, ?) WHERE id = 1");
  /** The timeline minus the time that this process has counted, in ms. */
  let timelineOffset = 0;
  /** The time of day minus the timeline, in ms. */
  let offset = 0;

  const counted = (): number => elapsedOf(clock) + (clock.asleep?.() ?? 0);
  const now = (): number => Math.floor(timelineOffset + counted());

  /** By how much the machine's clock differs from the timeline since the last `jump`; 0 if the difference is small. */
  function drift(): number {
    const difference = clock.now() - now() - offset;
    return Math.abs(difference) < minJumpMs ? 0 : difference;
  }

  function resume(): void {
    const row = read.get();
    const wall = clock.now();
    const away = row === undefined ? 0 : Math.max(0, wall - row.wall);
    timelineOffset = (row === undefined ? wall : row.time + away) - counted();
    offset = wall - now();
  }

  resume();
  return {
    sleep: clock.sleep,
    ...(clock.elapsed && { elapsed: clock.elapsed }),
    now,
    toWall: (ms) => Math.round(ms + offset + drift()),
    resume,
    mark: () => void write.run(now(), Math.round(clock.now())),
    jump() {
      const difference = drift();
      offset += difference;
      return difference;
    },
    keepUntil: (ms) => void keepUntil.run(Math.ceil(ms)),
    mayRemove() {
      return drift() <= 0 && Number(read.get()?.kept_until ?? 0) <= now();
    },
  };
}
