/**
 * Tells a run of the ends of what it asked for: one at a time, in the order in which they were
 * recorded, and after each lets the run go on as far as it can. So branches that work side by side see
 * the same order in every replay, and ask for the same positions.
 */
export interface Deliveries {
  /** An end with its place in the order (from 1, without gaps); `tell` is called when it is its turn. */
  add(endedAs: number, notify: () => void): void;
  /** Whether something is left to be told. */
  readonly busy: boolean;
  /** Tells nothing more. */
  close(): void;
}

export interface DeliveryOptions {
  /**
   * Called while ends are there and the one before them has not been asked for: calls back after a
   * while. Gives the way to call that off.
   */
  readonly whenStalled: (callback: () => void) => () => void;
  /** Called after each, once nothing is left. */
  readonly onIdle: () => void;
}

export function createDeliveries(options: DeliveryOptions): Deliveries {
  const waiting = new Map<number, () => void>();
  const passedOver = new Set<number>();
  let next = 1;
  let scheduled = false;
  let closed = false;
  let callOff: (() => void) | undefined;

  function goOn(): void {
    if (scheduled || closed) return;
    while (passedOver.delete(next)) next += 1;
    if (waiting.has(next)) {
      scheduled = true;
      callOff?.();
      callOff = undefined;
      // A turn of the event loop for each: what hangs on the end before it has been done by then.
      setImmediate(notifyNext);
    } else if (waiting.size > 0) callOff ??= options.whenStalled(passOver);
    else options.onIdle();
  }

  function notifyNext(): void {
    scheduled = false;
    notifyEnded(next);
  }

  function notifyEnded(endedAs: number): void {
    if (closed) return;
    const callback = waiting.get(endedAs);
    waiting.delete(endedAs);
    if (endedAs === next) next += 1;
    else passedOver.add(endedAs);
    callback?.();
    goOn();
  }

  /**
   * The run awaits something else before it asks for what is next, or its code now asks in another
   * order. It is told what is there, or each would wait for the other.
   */
  function passOver(): void {
    callOff = undefined;
    notifyEnded(Math.min(...waiting.keys()));
  }

  return {
    add(endedAs, callback) {
      if (closed) return;
      waiting.set(endedAs, callback);
      goOn();
    },
    get busy() {
      return scheduled || waiting.size > 0;
    },
    close() {
      closed = true;
      callOff?.();
      waiting.clear();
    },
  };
}

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
