import { Worker } from "node:worker_threads";

/** Shared between the thread that runs Python and the one that watches it. */
export interface WatchdogState {
  /** 1 while Python runs. */
  readonly armed: Int32Array<SharedArrayBuffer>;
  /** The moment to end at (of `monotonicMs`), and the bytes of memory to end at. */
  readonly limits: Float64Array<SharedArrayBuffer>;
  /** The process that this one works for. */
  readonly host: number;
}

/**
 * The note that the watchdog writes to standard error before it ends the process, with the reason after it.
 */
export const watchdogNote = "kit-watchdog: ";

export interface Watchdog {
  /** Watches until `rest`: ends the process after `ms`, or when it holds more than `bytes`. */
  watch(ms: number, bytes: number): void;
  rest(): void;
}

/** Starts the thread. `file` is that of `watchdog.ts`, `host` the process that this one works for. */
export function startWatchdog(file: URL, host: number): Watchdog {
  const state: WatchdogState = {
    armed: new Int32Array(new SharedArrayBuffer(4)),
    limits: new Float64Array(new SharedArrayBuffer(16)),
    host,
  };
  new Worker(file, { workerData: state }).unref();
  return {
    watch(ms, bytes) {
      state.limits[0] = monotonicMs() + ms;
      state.limits[1] = bytes;
      Atomics.store(state.armed, 0, 1);
      Atomics.notify(state.armed, 0);
    },
    rest() {
      Atomics.store(state.armed, 0, 0);
      Atomics.notify(state.armed, 0);
    },
  };
}

/** Milliseconds of a clock that all threads share and that never jumps. */
export function monotonicMs(): number {
  return Number(process.hrtime.bigint() / 1_000_000n);
}
