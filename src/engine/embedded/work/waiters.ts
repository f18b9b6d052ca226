/** Those who wait for an end, by the id of what they wait for. */
export interface Waiters {
  /** Resolves when `wake` is called for the id; rejects with the reason of the signal. */
  wait(id: string, signal?: AbortSignal): Promise<void>;
  wake(id: string): void;
  ids(): readonly string[];
}

export function createWaiters(): Waiters {
  const waiting = new Map<string, Set<() => void>>();
  return {
    wait: (id, signal) =>
      new Promise((resolve, reject) => {
        if (signal?.aborted) {
          reject(signal.reason);
          return;
        }
        const group = waiting.get(id) ?? new Set();
        waiting.set(id, group);
        const leave = (): void => {
          group.delete(wake);
          if (group.size === 0 && waiting.get(id) === group) waiting.delete(id);
          signal?.removeEventListener("abort", stop);
        };
        const wake = (): void => {
          leave();
          resolve();
        };
        const stop = (): void => {
          leave();
          reject(signal?.reason);
        };
        group.add(wake);
        signal?.addEventListener("abort", stop, { once: true });
      }),
    wake(id) {
      for (const wake of waiting.get(id) ?? []) wake();
    },
    ids: () => [...waiting.keys()],
  };
}
