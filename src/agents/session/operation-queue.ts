import { KitError } from "../../base/kit-error.ts";

interface Waiting {
  start(): void;
  refuse(reason: unknown): void;
}

/**
 * Runs one operation at a time, in the order of the calls. Throws `too_many_requests` when `limit` callers wait;
 * a caller whose signal fires while it waits leaves the queue with `signal.reason`.
 */
export class OperationQueue {
  readonly #limit: number;
  readonly #owner: { onIdle(): void } | undefined;
  #line: Waiting[] | undefined;
  #busy = false;
  #closed: (() => unknown) | undefined;

  /** `owner.onIdle` is called each time the last operation has ended. */
  constructor(limit: number, owner?: { onIdle(): void }) {
    this.#limit = limit;
    this.#owner = owner;
  }

  get waiting(): number {
    return this.#line?.length ?? 0;
  }

  get busy(): boolean {
    return this.#busy;
  }

  /** Runs `work` after all earlier callers. */
  async run<Value>(work: () => Promise<Value>, signal?: AbortSignal): Promise<Value> {
    if (this.#closed !== undefined) throw this.#closed();
    if (this.#busy) {
      if (this.waiting >= this.#limit) throw queueFull(this.#limit);
      await this.#place(signal);
    }
    this.#busy = true;
    try {
      return await work();
    } finally {
      this.#next();
    }
  }

  /** Refuses waiting and later callers with `reason()`. The running operation continues. */
  close(reason: () => unknown): void {
    this.#closed = reason;
    for (const waiting of this.#line?.splice(0) ?? []) waiting.refuse(reason());
  }

  /** Resolves when all operations enqueued until now have ended. */
  async drained(): Promise<void> {
    if (!this.#busy) return;
    await new Promise<void>((resolve) => {
      const start = (): void => {
        resolve();
        this.#next();
      };
      // A refused caller need not wait either.
      this.#wait({ start, refuse: () => resolve() });
    });
  }

  #next(): void {
    const first = this.#line?.shift();
    if (first !== undefined) first.start();
    else {
      this.#busy = false;
      this.#owner?.onIdle();
    }
  }

  /** Creates the queue on first use: most sessions never have two callers at once. */
  #wait(waiting: Waiting): void {
    this.#line ??= [];
    this.#line.push(waiting);
  }

  #place(signal: AbortSignal | undefined): Promise<void> {
    return new Promise((resolve, reject) => {
      const leave = (): void => {
        const index = this.#line?.indexOf(waiting) ?? -1;
        if (index === -1) return;
        this.#line?.splice(index, 1);
        reject(signal?.reason);
      };
      const waiting: Waiting = {
        start: () => {
          signal?.removeEventListener("abort", leave);
          resolve();
        },
        refuse: (reason) => {
          signal?.removeEventListener("abort", leave);
          reject(reason);
        },
      };
      if (signal?.aborted) {
        reject(signal.reason);
        return;
      }
      signal?.addEventListener("abort", leave, { once: true });
      this.#wait(waiting);
    });
  }
}

function queueFull(limit: number): KitError {
  return new KitError({
    code: "too_many_requests",
    message: `${limit} operations are already waiting for this session.`,
    hint: "Wait for some to finish, or spread the work over several sessions.",
    meta: { scope: "session", retry_after_s: 5 },
  });
}
