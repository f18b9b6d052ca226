import { setImmediate as nextTurn } from "node:timers/promises";

/** Returns a function that pauses once so many milliseconds have passed since the last pause. It rejects once the signal is aborted. */
export function createPauses(ms: number, signal?: AbortSignal): () => Promise<void> | undefined {
  let start = performance.now();
  return () => {
    if (performance.now() - start < ms) return undefined;
    return nextTurn().then(() => {
      signal?.throwIfAborted();
      start = performance.now();
    });
  };
}
