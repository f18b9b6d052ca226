const cell = new Int32Array(new SharedArrayBuffer(4));

/** Stops this process's thread for `ms`, as a machine that sleeps or is busy does: timers become due, and sockets are not read. */
export function standStill(ms: number): void {
  Atomics.wait(cell, 0, 0, ms);
}
