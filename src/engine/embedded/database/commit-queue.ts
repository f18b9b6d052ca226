import { isBusy, isFileFault, type StoreFaults } from "../../../sqlite/database-file.ts";
import { createSavepoint, createTransaction, type Database } from "../../../sqlite/statements.ts";
import { queueFullError } from "../../shared/engine-base.ts";

/** The default time to wait for another process's lock. */
const defaultPatienceMs = 5_000;
const lockRetryMs = 10;
/** The most writes per transaction, so that many writes do not block the event loop for long. */
const largestBatch = 1_000;
/** The most waiting writes; further writes are rejected with `unavailable`. */
const longestQueue = 20_000;

interface Pending {
  readonly write: (database: Database) => unknown;
  readonly resolve: (value: unknown) => void;
  readonly reject: (reason: unknown) => void;
}

type Outcome = { readonly value: unknown } | { readonly reason: unknown };

/**
 * Group commit: all writes of one turn of the event loop share one transaction and one fsync.
 */
export class CommitQueue {
  readonly #database: Database;
  readonly #faults: StoreFaults;
  readonly #lockPatienceMs: number;
  readonly #confirm: (() => void) | undefined;
  readonly #transaction: ReturnType<typeof createTransaction>;
  readonly #savepoint: ReturnType<typeof createSavepoint>;
  #pending: Pending[] = [];
  #isScheduled = false;
  #lockedSince: number | undefined;
  #idlers: (() => void)[] = [];

  constructor(
    database: Database,
    options: {
      readonly faults: StoreFaults;
      readonly lockPatienceMs?: number;
      /** Called after each commit, before its writers resolve. When it throws, all of them reject with that error. */
      readonly confirm?: () => void;
    },
  ) {
    this.#database = database;
    this.#faults = options.faults;
    this.#lockPatienceMs = options.lockPatienceMs ?? defaultPatienceMs;
    this.#confirm = options.confirm;
    this.#transaction = createTransaction(database);
    this.#savepoint = createSavepoint(database);
  }

  /** See `EmbeddedBase.commit`. */
  commit<Value>(write: (database: Database) => Value): Promise<Value> {
    return new Promise((resolve, reject) => {
      if (this.#pending.length >= longestQueue) {
        reject(queueFullError());
        return;
      }
      this.#pending.push({ write, resolve: resolve as (value: unknown) => void, reject });
      this.#schedule();
    });
  }

  /** Resolves once all writes have resolved or rejected. */
  idle(): Promise<void> {
    if (this.#pending.length === 0) return Promise.resolve();
    return new Promise((resolve) => {
      this.#idlers.push(resolve);
    });
  }

  #schedule(): void {
    if (this.#isScheduled) return;
    this.#isScheduled = true;
    setImmediate(this.#flush);
  }

  readonly #flush = (): void => {
    this.#isScheduled = false;
    const batch = this.#pending.splice(0, largestBatch);
    let hasBegun = false;
    try {
      const outcomes = this.#transaction(() => {
        hasBegun = true;
        this.#lockedSince = undefined;
        return batch.map(({ write }) => this.#attempt(write));
      });
      this.#confirm?.();
      this.#faults.passed();
      for (const [index, { resolve, reject }] of batch.entries()) {
        const outcome = outcomes[index];
        if (outcome !== undefined && "value" in outcome) resolve(outcome.value);
        else reject(outcome?.reason);
      }
    } catch (error) {
      if (!hasBegun && isBusy(error) && this.#waitsForLock()) this.#pending = [...batch, ...this.#pending];
      else this.#reject(batch, error);
    }
    this.#continue();
  };

  /** Runs one write of the transaction. If it throws, only its changes are undone. */
  #attempt(write: Pending["write"]): Outcome {
    try {
      return { value: this.#savepoint(() => write(this.#database)) };
    } catch (reason) {
      // A full disk ends the whole transaction, so all its writes must be rejected.
      if (!this.#database.isTransaction || isFileFault(reason)) throw reason;
      return { reason };
    }
  }

  #reject(batch: readonly Pending[], error: unknown): void {
    this.#lockedSince = undefined;
    const reason = this.#faults.toError(error);
    for (const { reject } of batch) reject(reason);
  }

  /** Whether the batch is retried, because another process holds the lock; the writes keep their order. */
  #waitsForLock(): boolean {
    this.#lockedSince ??= performance.now();
    return performance.now() - this.#lockedSince < this.#lockPatienceMs;
  }

  #continue(): void {
    if (this.#pending.length === 0) {
      for (const resolve of this.#idlers.splice(0)) resolve();
    } else if (this.#lockedSince === undefined) {
      this.#schedule();
    } else if (!this.#isScheduled) {
      this.#isScheduled = true;
      setTimeout(this.#flush, lockRetryMs);
    }
  }
}
