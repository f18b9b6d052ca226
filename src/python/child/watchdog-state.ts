import { Worker } from "node:worker_threads";

/** State shared by the thread that runs Python and the watchdog thread. */
export interface WatchdogState {
  /** 1 while Python runs. */
  readonly armed: Int32Array<SharedArrayBuffer>;
  /** The time (by `monotonicMs`) and the bytes of memory at which to end the process. */
  readonly limits: Float64Array<SharedArrayBuffer>;
  /** The id of the host process. */
  readonly host: number;
}

/**
 * The text that the watchdog writes to standard error before it ends the process, followed by the reason.
 */
export const watchdogNote = "kit-watchdog: ";

export interface Watchdog {
  /** Watches until `rest` is called: ends the process after `ms`, or when it has more than `bytes` of memory. */
  watch(ms: number, bytes: number): void;
  rest(): void;
}

/** Starts the thread. `file` is the path of `watchdog.ts`, `host` the id of the host process. */
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

/** Milliseconds of a monotonic clock that all threads share. */
export function monotonicMs(): number {
  return Number(process.hrtime.bigint() / 1_000_000n);
}
