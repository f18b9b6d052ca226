/** Callers that wait for the end of work, by the id of the work. */
export interface Waiters {
  /** Resolves when `wake` is called for the id; rejects with the reason of the signal. */
  wait(id: string, signal?: AbortSignal): Promise<void>;
  wake(id: string): void;
  ids(): readonly string[];
  /** Rejects all waiting callers. */
  close(reason: unknown): void;
}

interface Waiter {
  readonly resolve: () => void;
  readonly reject: (reason: unknown) => void;
}

export function createWaiters(): Waiters {
  const waiting = new Map<string, Set<Waiter>>();
  return {
    wait: (id, signal) =>
      new Promise((resolve, reject) => {
        if (signal?.aborted) {
          reject(signal.reason);
          return;
        }
        const group = waiting.get(id) ?? new Set<Waiter>();
        waiting.set(id, group);
        const leave = (): void => {
          group.delete(waiter);
          if (group.size === 0 && waiting.get(id) === group) waiting.delete(id);
          signal?.removeEventListener("abort", stop);
        };
        const waiter: Waiter = {
          resolve: () => {
            leave();
            resolve();
          },
          reject: (reason) => {
            leave();
            reject(reason);
          },
        };
        const stop = (): void => waiter.reject(signal?.reason);
        group.add(waiter);
        signal?.addEventListener("abort", stop, { once: true });
      }),
    wake(id) {
      for (const waiter of waiting.get(id) ?? []) waiter.resolve();
    },
    ids: () => [...waiting.keys()],
    close(reason) {
      for (const group of [...waiting.values()]) for (const waiter of group) waiter.reject(reason);
    },
  };
}
