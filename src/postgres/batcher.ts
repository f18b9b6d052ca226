import { setTimeout as sleep } from "node:timers/promises";

interface Pending<In, Out> {
  readonly one: In;
  readonly resolve: (value: Out) => void;
  readonly reject: (reason: unknown) => void;
}

/** The most items per statement. */
const largestBatch = 500;
/** The number of items from which `spacingMs` applies. */
const crowd = 8;

/**
 * Group commit over a connection: calls of one turn of the event loop, and calls during a running statement, share the
 * next statement. One statement runs at a time, in the order of the calls.
 */
export class Batcher<In, Out> {
  readonly #run: (all: readonly In[]) => Promise<readonly (Out | Error)[]>;
  readonly #spacingMs: number;
  #crowdedAt = Number.NEGATIVE_INFINITY;
  #pending: Pending<In, Out>[] = [];
  #busy = false;
  readonly #idlers: (() => void)[] = [];

  /**
   * `run` returns one result per item; an `Error` rejects the item's caller. `spacingMs`: the least time between the starts
   * of two statements after a statement with many items, so that the next one has many too; default 0.
   */
  constructor(
    run: (all: readonly In[]) => Promise<readonly (Out | Error)[]>,
    { spacingMs = 0 }: { readonly spacingMs?: number } = {},
  ) {
    this.#run = run;
    this.#spacingMs = spacingMs;
  }

  /** The number of items that wait for the next statement. */
  get size(): number {
    return this.#pending.length;
  }

  /** Whether an item waits for its result. */
  get isBusy(): boolean {
    return this.#busy;
  }

  add(one: In): Promise<Out> {
    return new Promise((resolve, reject) => {
      this.#pending.push({ one, resolve, reject });
      if (this.#busy) return;
      this.#busy = true;
      setImmediate(() => void this.#flush());
    });
  }

  /** Resolves once all items have their results. */
  async idle(): Promise<void> {
    if (this.#busy) await new Promise<void>((resolve) => this.#idlers.push(resolve));
  }

  async #flush(): Promise<void> {
    while (this.#pending.length > 0) {
      const pauseMs = this.#crowdedAt + this.#spacingMs - performance.now();
      if (pauseMs > 1) await sleep(pauseMs);
      const batch = this.#pending.splice(0, largestBatch);
      if (batch.length >= crowd) this.#crowdedAt = performance.now();
      try {
        const results = await this.#run(batch.map(({ one }) => one));
        for (const [index, { resolve, reject }] of batch.entries()) {
          const result = results[index] as Out | Error;
          if (result instanceof Error) reject(result);
          else resolve(result);
        }
      } catch (error) {
        for (const { reject } of batch) reject(error);
      }
    }
    this.#busy = false;
    for (const resolve of this.#idlers.splice(0)) resolve();
  }
}
