import { KitError } from "../../../base/kit-error.ts";
import { isBusy, isFileFault, type StoreFaults } from "../../../sqlite/database-file.ts";
import { createSavepoint, createTransaction, type Database } from "../../../sqlite/statements.ts";

/** The default time to wait for another process's lock. */
const defaultPatienceMs = 5_000;
const lockRetryMs = 10;
/** The most writes per transaction, so that many writes do not block the event loop for long. */
const largestBatch = 1_000;
/** The most waiting writes; further writes are rejected with `unavailable`. */
const longestQueue = 20_000;

export interface CommitQueue {
  /** See `EmbeddedBase.commit`. */
  commit<Value>(write: (database: Database) => Value): Promise<Value>;
  /** Resolves once all writes have resolved or rejected. */
  idle(): Promise<void>;
}

interface Pending {
  readonly write: (database: Database) => unknown;
  readonly resolve: (value: unknown) => void;
  readonly reject: (reason: unknown) => void;
}

type Outcome = { readonly value: unknown } | { readonly reason: unknown };

/**
 * Group commit: all writes of one turn of the event loop share one transaction and one fsync.
 */
export function createCommitQueue(
  database: Database,
  options: {
    readonly faults: StoreFaults;
    readonly lockPatienceMs?: number;
    /** Called after each commit, before its writers resolve. When it throws, all of them reject with that error. */
    readonly confirm?: () => void;
  },
): CommitQueue {
  const { faults, lockPatienceMs = defaultPatienceMs, confirm } = options;
  let pending: Pending[] = [];
  let scheduled = false;
  let lockedSince: number | undefined;
  let idlers: (() => void)[] = [];

  const transaction = createTransaction(database);
  const part = createSavepoint(database);

  function schedule(): void {
    if (scheduled) return;
    scheduled = true;
    setImmediate(flush);
  }

  function flush(): void {
    scheduled = false;
    const batch = pending.splice(0, largestBatch);
    let hasBegun = false;
    try {
      const outcomes = transaction(() => {
        hasBegun = true;
        lockedSince = undefined;
        return batch.map(({ write }) => attempt(write));
      });
      confirm?.();
      faults.passed();
      for (const [index, { resolve, reject }] of batch.entries()) {
        const outcome = outcomes[index];
        if (outcome !== undefined && "value" in outcome) resolve(outcome.value);
        else reject(outcome?.reason);
      }
    } catch (error) {
      if (!hasBegun && isBusy(error) && waitForLock()) pending = [...batch, ...pending];
      else refuse(batch, error);
    }
    goOn();
  }

  /** Runs one write of the transaction. If it throws, only its changes are undone. */
  function attempt(write: Pending["write"]): Outcome {
    try {
      return { value: part(() => write(database)) };
    } catch (reason) {
      // A full disk ends the whole transaction, so all its writes must be rejected.
      if (!database.isTransaction || isFileFault(reason)) throw reason;
      return { reason };
    }
  }

  function refuse(batch: readonly Pending[], error: unknown): void {
    lockedSince = undefined;
    const reason = faults.toError(error);
    for (const { reject } of batch) reject(reason);
  }

  /** Whether the batch is retried, because another process holds the lock; the writes keep their order. */
  function waitForLock(): boolean {
    lockedSince ??= performance.now();
    return performance.now() - lockedSince < lockPatienceMs;
  }

  function goOn(): void {
    if (pending.length > 0) {
      if (lockedSince === undefined) schedule();
      else if (!scheduled) {
        scheduled = true;
        setTimeout(flush, lockRetryMs);
      }
      return;
    }
    for (const resolve of idlers.splice(0)) resolve();
  }

  return {
    commit: (write) =>
      new Promise((resolve, reject) => {
        if (pending.length >= longestQueue) {
          reject(queueFullError());
          return;
        }
        pending.push({ write, resolve: resolve as (value: unknown) => void, reject });
        schedule();
      }),
    idle: () =>
      pending.length === 0
        ? Promise.resolve()
        : new Promise((resolve) => {
            idlers = [...idlers, resolve];
          }),
  };
}

function queueFullError(): KitError {
  return new KitError({
    code: "unavailable",
    message: "Too many writes are waiting for the engine's store. Try again later.",
    meta: { retry_after_s: 1 },
  });
}
