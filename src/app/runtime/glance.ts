/** How long prompts share a look at the file system at most, in milliseconds. */
const sharedMs = 1;

let turn = 0;
let isTurning = false;

/** A look at the file system: when it was. */
export interface Glance {
  readonly turn: number;
  readonly at: number;
}

/**
 * Whether a look still holds. Prompts that come in one turn of the process share it: what a caller has changed and
 * waited for is behind them. A change without waiting, in the midst of a turn, is seen a millisecond later.
 */
export function holds(glance: Glance, now: number): boolean {
  return glance.turn === turn && now - glance.at < sharedMs;
}

export function glanceAt(now: number): Glance {
  if (!isTurning) {
    isTurning = true;
    setImmediate(() => {
      turn += 1;
      isTurning = false;
    });
  }
  return { turn, at: now };
}
