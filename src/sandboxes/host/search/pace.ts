import { setImmediate } from "node:timers/promises";

/** Keeps a long piece of work from holding up everything else, and from going on for ever. */
export interface Pace {
  /** Call it often. A promise only when it is time to let others run; rejects with the signal's reason. */
  pause(): Promise<void> | undefined;
  /** Whether the time for the whole work is used up. */
  isOver(): boolean;
}

const sliceMs = 8;

export function createPace(signal: AbortSignal | undefined, budgetMs: number): Pace {
  const end = performance.now() + budgetMs;
  let sliceEnd = performance.now() + sliceMs;
  const rest = async (): Promise<void> => {
    await setImmediate();
    signal?.throwIfAborted();
    sliceEnd = performance.now() + sliceMs;
  };
  signal?.throwIfAborted();
  return {
    pause: () => (performance.now() < sliceEnd ? undefined : rest()),
    isOver: () => performance.now() > end,
  };
}
