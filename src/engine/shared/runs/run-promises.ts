/**
 * Delivers the ends of a run's calls: one at a time, in the order in which they were recorded. After each end the run
 * continues as far as it can. So parallel branches see the same order in every replay, and use the same positions.
 */
export interface Deliveries {
  /** Adds an end with its number (from 1, without gaps); `notify` is called when it is its turn. */
  add(endedAs: number, notify: () => void): void;
  /** Whether an end is left to deliver. */
  readonly busy: boolean;
  /** The highest number of a delivered end; 0 before the first. */
  readonly last: number;
  /** Delivers no more ends. */
  close(): void;
}

export interface DeliveryOptions {
  /**
   * Called when ends wait for an earlier end that the run has not requested. Calls back after a while; returns the
   * function that prevents it.
   */
  readonly whenStalled: (callback: () => void) => () => void;
  /** Called once no end is left to deliver. */
  readonly onIdle: () => void;
}

export function createDeliveries(options: DeliveryOptions): Deliveries {
  const waiting = new Map<number, () => void>();
  const passedOver = new Set<number>();
  let next = 1;
  let last = 0;
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
      // One turn of the event loop per end: by then the code that awaited the previous end has run.
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
    last = Math.max(last, endedAs);
    callback?.();
    goOn();
  }

  /**
   * The run awaits another end before it requests the next one, or its code now makes its calls in another order.
   * Delivers the earliest available end, because otherwise the run and the journal would wait for each other.
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
    get last() {
      return last;
    },
    close() {
      closed = true;
      callOff?.();
      waiting.clear();
    },
  };
}

/** The promises that the calls of a run have returned to its code. */
export interface GuardedCalls {
  /** Returns a promise for the call that is rejected when the run is cancelled, and never settles once the execution has ended. */
  guard<Value>(call: () => Promise<Value>): Promise<Value>;
  /** Rejects all open promises. */
  reject(reason: unknown): void;
  /** Prevents all open promises from settling, and further calls from starting: the execution has ended. */
  close(): void;
}

/** `signal` is the signal of the run: once it has fired, calls are rejected with its reason. */
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
        const settle = (complete: () => void): void => {
          open.delete(reject);
          if (!closed) complete();
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
