import { join } from "node:path";
import type { Clock } from "../../base/clock.ts";
import { DatabaseFile } from "../../sqlite/database-file.ts";
import { StoreFaults } from "../../sqlite/sqlite-fault.ts";
import type { Database } from "../../sqlite/statements.ts";
import { type EngineLimits, isLost, stopped } from "../shared/engine-base.ts";
import { JobQueue } from "../shared/queue/job-queue.ts";
import { type BlobStore, createBlobStore, createRowBlobStore } from "./database/blobs.ts";
import { createCommitQueue } from "./database/commit-queue.ts";
import { openDatabase } from "./database/engine-database.ts";
import type { EmbeddedBase } from "./embedded-base.ts";
import { createLease, createProcessLock, type LeaseHolder, soleProcess } from "./lease/lease.ts";
import { createTimeline } from "./lease/timeline.ts";

/** The base that the parts share, and the controls that the engine keeps to itself. */
export interface EngineCore {
  readonly base: EmbeddedBase;
  readonly lease: LeaseHolder;
  readonly blobs: BlobStore;
  readonly limits: EngineLimits;
  /** Whether other processes may have a part in it. */
  readonly isShared: boolean;
  /** Notices when the database's file is deleted or replaced. */
  readonly file: DatabaseFile;
  /** Fires `base.draining`. */
  drain(): void;
  /** Fires `base.stopping`. */
  stop(): void;
  /** Writes what is due, then closes the database. */
  /** Tells of what the engine's database cannot do for now. */
  readonly faults: StoreFaults;
  close(): Promise<void>;
}

export interface CoreOptions {
  /** None, and no database: all is in memory. */
  readonly folder: string | undefined;
  /** Holds its tables, instead of a folder; no other process has a part in it. */
  readonly database?: Database | undefined;
  /** Called after each commit. */
  readonly onCommit?: (() => void) | undefined;
  readonly clock: Clock;
  readonly limits: EngineLimits;
}

export function createEngineCore({ folder, clock, limits, onCommit, ...given }: CoreOptions): EngineCore {
  const database = openDatabase(given.database ?? folder);
  const file = new DatabaseFile({
    store: "The engine's store",
    file: folder === undefined ? undefined : join(folder, "engine.db"),
  });
  const faults = new StoreFaults(engineStore);
  const confirm = (): void => {
    file.check();
    onCommit?.();
  };
  const commits = createCommitQueue(database, { faults, confirm });
  const lock =
    given.database === undefined
      ? createProcessLock(folder === undefined ? undefined : join(folder, "engine.lock"), faults)
      : soleProcess;
  const lease = createLease(database, { clock, ttlMs: limits.leaseMs, lock });
  const blobs =
    given.database === undefined
      ? createBlobStore(folder === undefined ? undefined : join(folder, "blobs"), database)
      : createRowBlobStore(given.database);
  const stopping = new AbortController();
  const draining = new AbortController();
  const time = createTimeline(database, clock);
  const base: EmbeddedBase = {
    clock,
    time,
    lease,
    blobs,
    database,
    stopping: stopping.signal,
    draining: draining.signal,
    leaseOf: () => ({ fence: lease.fence, signal: lease.signal }),
    checkLease: (_owned, fence) => base.commit(() => undefined, { fence }),
    queue: new JobQueue({ clock: time, slots: limits.running }),
    commit(write, options = {}) {
      const { fence } = options;
      if (options.fenced !== true && fence === undefined) return commits.commit(write);
      const fenced = commits.commit(() => {
        lease.check(fence);
        return write();
      });
      return fenced.catch((error: unknown) => {
        // The first write that is refused ends the lease for all work of this process at once, not at the next heartbeat.
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
    isShared: folder !== undefined,
    drain: () => draining.abort(stopped()),
    stop: () => stopping.abort(stopped()),
    async close() {
      await commits.idle();
      lock.close();
      database.close();
    },
  };
}

const engineStore = {
  store: "The engine's store",
  hint: "Check the disk of the engine's folder. The engine continues by itself once the disk works.",
  repair: "Put engine.db of the engine's folder back from a backup.",
};
