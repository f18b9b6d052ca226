/** The promises that a run's calls have given to its code. */
export interface GuardedCalls {
  /** A call's promise: it settles while the run is alive, and is rejected when the run is cancelled. */
  guard<Value>(call: () => Promise<Value>): Promise<Value>;
  /** Rejects all that are open. */
  reject(reason: unknown): void;
  /** None of them settles any more, and none does anything: the run was left behind. */
  close(): void;
}

/** `signal` is the run's: once it has fired, calls are rejected with its reason. */
export function createGuardedCalls(signal: AbortSignal): GuardedCalls {
  const open = new Set<(reason: unknown) => void>();
  let closed = false;
  return {
    guard<Value>(call: () => Promise<Value>) {
      const promise = new Promise<Value>((resolve, reject) => {
        if (closed) return;
        if (signal.aborted) {
          reject(signal.reason);
          return;
        }
        open.add(reject);
        const settle = (then: () => void): void => {
          open.delete(reject);
          if (!closed) then();
        };
        call().then(
          (value) => settle(() => resolve(value)),
          (error) => settle(() => reject(error)),
        );
      });
      // A branch that the workflow no longer awaits must not end the process with its failure.
      promise.catch(() => undefined);
      return promise;
    },
    reject(reason) {
      for (const reject of open) reject(reason);
      open.clear();
    },
    close() {
      closed = true;
      open.clear();
    },
  };
}
