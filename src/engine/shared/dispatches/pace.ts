/** Resolves at once for the first calls in a turn of the event loop; for further calls in one of the next turns. */
export type Pace = () => Promise<void>;

/**
 * Group commit lets many attempts begin at the same moment: together, the synchronous starts of their handlers would block
 * the event loop. With a pace, a few attempts begin per turn of the event loop, in order, and requests are answered in
 * between.
 */
export function createPace(perTurn: number): Pace {
  const waiting: (() => void)[] = [];
  let left = perTurn;
  let scheduled = false;

  function schedule(): void {
    if (scheduled) return;
    scheduled = true;
    setImmediate(turn);
  }

  function turn(): void {
    scheduled = false;
    const next = waiting.splice(0, perTurn);
    left = perTurn - next.length;
    if (next.length > 0) schedule();
    for (const go of next) go();
  }

  return async () => {
    schedule();
    if (left > 0) left -= 1;
    else await new Promise<void>((resolve) => waiting.push(resolve));
  };
}
