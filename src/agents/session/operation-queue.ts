import { KitError } from "../../base/kit-error.ts";

export interface OperationQueue {
  /** Runs `work` after everything that was asked before it. */
  run<Value>(work: () => Promise<Value>, signal?: AbortSignal): Promise<Value>;
  readonly waiting: number;
  readonly busy: boolean;
}

/**
 * One operation at a time, in the order asked. Throws `too_many_requests` when `limit` are waiting;
 * one whose signal fires while it waits leaves the line with `signal.reason`.
 */
export function createOperationQueue(limit: number): OperationQueue {
  const line: (() => void)[] = [];
  let busy = false;
  const next = (): void => {
    const start = line.shift();
    if (start === undefined) busy = false;
    else start();
  };
  return {
    get waiting() {
      return line.length;
    },
    get busy() {
      return busy;
    },
    async run(work, signal) {
      if (busy) {
        if (line.length >= limit) throw full(limit);
        await place(line, signal);
      }
      busy = true;
      try {
        return await work();
      } finally {
        next();
      }
    },
  };
}

function place(line: (() => void)[], signal: AbortSignal | undefined): Promise<void> {
  return new Promise((resolve, reject) => {
    const leave = (): void => {
      const index = line.indexOf(start);
      if (index === -1) return;
      line.splice(index, 1);
      reject(signal?.reason);
    };
    const start = (): void => {
      signal?.removeEventListener("abort", leave);
      resolve();
    };
    if (signal?.aborted) {
      reject(signal.reason);
      return;
    }
    signal?.addEventListener("abort", leave, { once: true });
    line.push(start);
  });
}

function full(limit: number): KitError {
  return new KitError({
    code: "too_many_requests",
    message: `${limit} operations are already waiting for this session.`,
    hint: "Wait for some to finish, or spread the work over several sessions.",
    meta: { retry_after_seconds: 5 },
  });
}
