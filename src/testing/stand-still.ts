const cell = new Int32Array(new SharedArrayBuffer(4));

/** Blocks this thread for `ms`, like a machine that sleeps or is busy: timers become due, and sockets are not read. */
export function standStill(ms: number): void {
  Atomics.wait(cell, 0, 0, ms);
}
