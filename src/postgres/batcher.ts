import { setTimeout as sleep } from "node:timers/promises";

interface Pending<In, Out> {
  readonly one: In;
  readonly resolve: (value: Out) => void;
  readonly reject: (reason: unknown) => void;
}

/** The most that one statement does. */
const largestBatch = 500;
/** So many in one statement are a crowd. */
const crowd = 8;

/**
 * Group commit over a connection: what is asked for in one turn of the event loop, and while a statement is on its way,
 * shares the next one. One statement at a time, in the order of the calls.
 */
export class Batcher<In, Out> {
  readonly #run: (all: readonly In[]) => Promise<readonly (Out | Error)[]>;
  readonly #spacingMs: number;
  #crowdedAt = Number.NEGATIVE_INFINITY;
  #pending: Pending<In, Out>[] = [];
  #busy = false;
  readonly #idlers: (() => void)[] = [];

  /**
   * `run` gives one result for each; an `Error` among them rejects its caller. `spacingMs`: how long after a statement of many the
   * next one begins, so that it is one of many too; after a statement of a few it begins at once. Default 0.
   */
  constructor(
    run: (all: readonly In[]) => Promise<readonly (Out | Error)[]>,
    { spacingMs = 0 }: { readonly spacingMs?: number } = {},
  ) {
    this.#run = run;
    this.#spacingMs = spacingMs;
  }

  /** How many wait to be written. */
  get size(): number {
    return this.#pending.length;
  }

  /** Whether something waits for its answer. */
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

  /** Resolves once all that was asked for has been answered. */
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
