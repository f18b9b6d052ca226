/** Resolves at once for the first few in a turn of the event loop; for the others in one of the next turns. */
export type Pace = () => Promise<void>;

/**
 * Group commit lets a crowd begin in the same moment: what each does before it first waits for something
 * would add up, and keep requests waiting all that time. Here they begin a few at a time, in their order, and
 * the process looks at its sockets in between.
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
