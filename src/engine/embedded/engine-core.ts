import { join } from "node:path";
import type { Clock } from "../../base/clock.ts";
import { DatabaseFile, StoreFaults } from "../../sqlite/database-file.ts";
import type { Database } from "../../sqlite/statements.ts";
import type { EngineHandlers } from "../contract.ts";
import { type EngineLimits, isLost } from "../shared/engine-base.ts";
import { Stops } from "../shared/engine-shell.ts";
import { JobQueue } from "../shared/queue/job-queue.ts";
import { type BlobStore, createBlobStore, createRowBlobStore } from "./database/blobs.ts";
import { CommitQueue } from "./database/commit-queue.ts";
import { openDatabase } from "./database/engine-database.ts";
import { createLostWork, type LostWork } from "./database/lost-work.ts";
import type { EmbeddedBase, EnginePart } from "./embedded-base.ts";
import { createLease, createProcessLock, createTimeline, type LeaseHolder, soleProcess } from "./lease.ts";

/** The base that the parts share, and the controls that only the engine uses. */
export interface EngineCore {
  readonly base: EmbeddedBase;
  readonly lease: LeaseHolder;
  readonly blobs: BlobStore;
  readonly limits: EngineLimits;
  /** Whether other processes can use the same store. */
  readonly isShared: boolean;
  /** Notices when the database's file is deleted or replaced. */
  readonly file: DatabaseFile;
  /** Absent if the databases are not files. */
  readonly lostWork: LostWork | undefined;
  /** Calls `LostWork.mark` if this process holds the lease. */
  mark(): Promise<void>;
  readonly stops: Stops;
  /** Converts the faults of the engine's database to errors. */
  readonly faults: StoreFaults;
  /** Flushes pending writes, then closes the database. */
  close(): Promise<void>;
}

export interface CoreOptions {
  /** Without a folder and a database, everything is in memory. */
  readonly folder: string | undefined;
  /** The databases of other stores, with which the engine's is compared. */
  readonly beside?: readonly string[] | undefined;
  /** Holds the engine's tables, instead of a folder; no other process uses it. */
  readonly database?: Database | undefined;
  /** Called after each commit. */
  readonly onCommit?: (() => void) | undefined;
  readonly clock: Clock;
  readonly limits: EngineLimits;
}

export function createEngineCore({ folder, clock, limits, onCommit, ...options }: CoreOptions): EngineCore {
  const database = openDatabase(options.database ?? folder);
  const file = new DatabaseFile({
    store: "The engine's store",
    file: folder === undefined ? undefined : join(folder, "engine.db"),
  });
  const faults = new StoreFaults(engineStore);
  const confirm = (): void => {
    file.check();
    onCommit?.();
  };
  const commits = new CommitQueue(database, { faults, confirm });
  const lock =
    options.database === undefined
      ? createProcessLock(folder === undefined ? undefined : join(folder, "engine.lock"), faults)
      : soleProcess;
  const lease = createLease(database, { clock, ttlMs: limits.leaseMs, lock });
  const blobs =
    options.database === undefined
      ? createBlobStore(folder === undefined ? undefined : join(folder, "blobs"), database)
      : createRowBlobStore(options.database);
  const stops = new Stops();
  const time = createTimeline(database, clock);
  const others = [...(folder === undefined ? [] : [join(folder, "events.db")]), ...(options.beside ?? [])];
  const lostWork = folder === undefined ? undefined : createLostWork({ folder, others, database, clock });
  const mark = async (): Promise<void> => {
    if (!lease.isHeld) return;
    await lostWork?.mark((write) => base.commit(write, { fenced: true, isUpkeep: true }));
  };
  const base: EmbeddedBase = {
    clock,
    time,
    lease,
    blobs,
    database,
    stopping: stops.stopping.signal,
    draining: stops.draining.signal,
    leaseOf: () => ({ fence: lease.fence, signal: lease.signal }),
    checkLease: (_owned, fence) => base.commit(() => undefined, { fence }),
    queue: new JobQueue({ clock: time, slots: limits.running }),
    commit(write, options = {}) {
      const { fence } = options;
      // The queue writes both in one transaction. A mark that fails is made again later.
      if (options.isUpkeep !== true && lostWork?.worked() === true) mark().catch(() => undefined);
      if (options.fenced !== true && fence === undefined) return commits.commit(write);
      const fenced = commits.commit(() => {
        lease.check(fence);
        return write();
      });
      return fenced.catch((error: unknown) => {
        // The first refused write ends the lease for all work of this process now, not at the next heartbeat.
        if (isLost(error) && (fence ?? lease.fence) === lease.fence) lease.lose();
        throw error;
      });
    },
  };
  return {
    base,
    faults,
    lease,
    blobs,
    limits,
    file,
    lostWork,
    mark,
    isShared: folder !== undefined,
    stops,
    async close() {
      await commits.idle();
      lock.close();
      lostWork?.close();
      database.close();
    },
  };
}

const engineStore = {
  store: "The engine's store",
  hint: "Check the disk of the engine's folder. The engine continues automatically once the disk works.",
  repair: "Restore engine.db in the engine's folder from a backup.",
};

const pruneEveryMs = 60_000;
const sweepEveryMs = 3_600_000;

export interface Tenure {
  /** Tries to gain the lease once. A process that does not get it stands by, and keeps trying in the background. */
  start(handlers: EngineHandlers): Promise<void>;
  /** Ends all background tasks, and releases the lease. */
  end(): Promise<void>;
}

/**
 * Gains and renews the lease, starts the parts when it is gained, and notifies them when another process has written.
 */
export function createTenure(core: EngineCore, parts: readonly EnginePart[]): Tenure {
  const { base, lease, limits } = core;
  const { clock, queue } = base;
  const over = new AbortController();
  const version = base.database.prepare("PRAGMA data_version");
  let seen = Number(version.get()?.data_version);

  async function tryFor(handlers: EngineHandlers): Promise<void> {
    if (!lease.isFree()) return;
    try {
      const gained = await base.commit(() => {
        if (!lease.acquire()) return false;
        base.time.resume();
        base.time.mark();
        core.lostWork?.check();
        return true;
      });
      if (!gained || over.signal.aborted) return;
      lease.begin();
      lease.signal.addEventListener("abort", () => queue.close({ clear: true }), { once: true });
      for (const part of parts) await part.start(handlers);
    } catch (error) {
      lease.lose();
      throw error;
    }
    if (lease.isHeld && !over.signal.aborted) queue.open();
  }

  /** Renews the lease long before it expires, so that a store that is locked for a moment does not cost it. */
  async function beat(handlers: EngineHandlers): Promise<void> {
    if (!lease.isHeld) return await tryFor(handlers);
    // A process that wakes after it lost the lease notices here. A late heartbeat keeps a lease that no other process took.
    if (!lease.isOurs() || !(await base.commit(() => lease.renew(), { isUpkeep: true }))) return lease.lose();
    const jump = base.time.jump();
    await base.commit(() => noteTime(jump), { fenced: true, isUpkeep: true });
    await core.mark();
    if (jump === 0) return;
    try {
      handlers.onClockSet?.(jump);
    } catch {
      // A listener that throws must not stop the work.
    }
    for (const part of parts) await part.clockSet?.();
  }

  /** Call it in a transaction. A clock that was set forward can be set back, so retention pauses for the same time. */
  function noteTime(jump: number): void {
    base.time.mark();
    const { retentionMs, longestRetentionMs = retentionMs } = limits;
    if (jump > 0) base.time.keepUntil(base.time.now() + Math.min(jump, longestRetentionMs));
  }

  async function noticeWrites(): Promise<void> {
    const now = Number(version.get()?.data_version);
    if (now === seen) return;
    seen = now;
    core.lostWork?.worked();
    for (const part of parts) part.onForeignWrite();
  }

  async function prune(): Promise<void> {
    if (!lease.isHeld || !base.time.mayRemove()) return;
    for (const part of parts) {
      while (lease.isHeld && (await part.prune?.(clock.now() - limits.retentionMs)) === true);
    }
  }

  async function sweep(): Promise<void> {
    if (lease.isHeld) await core.blobs.sweep(clock.now());
  }

  const background = core.isShared ? [every(limits.pollMs, noticeWrites)] : [];

  /** Repeats a task until the end of the tenure. A failed task runs again after the next pause. */
  async function every(ms: number | (() => number), task: () => Promise<void>): Promise<void> {
    while (!over.signal.aborted) {
      await clock.sleep(typeof ms === "number" ? ms : ms(), over.signal).catch(() => undefined);
      if (!over.signal.aborted) await task().catch(() => undefined);
    }
  }

  return {
    async start(handlers) {
      await tryFor(handlers);
      // A standby checks often, so that it replaces a dead holder at once.
      const pause = (): number => (lease.isHeld ? limits.leaseMs / 5 : Math.min(limits.leaseMs / 5, 100));
      background.push(
        every(pause, () => beat(handlers)),
        every(pruneEveryMs, prune),
        every(sweepEveryMs, sweep),
      );
    },
    async end() {
      over.abort();
      await Promise.all(background);
      await core.mark().catch(() => undefined);
      if (lease.isHeld) await base.commit(() => lease.release()).catch(() => undefined);
      lease.lose();
    },
  };
}
