/** The next attempt at failed work. */
export interface NextAttempt {
  readonly delayMs: number;
}

/** The attempt of an engine in which an operation runs. */
export interface OperationAttempt {
  /** The input that the operation works on. */
  readonly dispatch_id: string;
  /** From 1. */
  readonly number: number;
  /** Returns what the engine does if the operation fails with this error: undefined if the operation then has failed for good. */
  planRetry(error: unknown): Promise<NextAttempt | undefined>;
}

const attempts = new WeakMap<AbortSignal, OperationAttempt>();

/** Marks the signal of an operation that an engine tries again after some errors. */
export function attachAttempt(attempt: OperationAttempt, signal: AbortSignal): void {
  attempts.set(signal, attempt);
}

/** The attempt in which the operation with that signal runs; undefined if nothing tries it again. */
export function attemptOf(signal: AbortSignal | undefined): OperationAttempt | undefined {
  return signal === undefined ? undefined : attempts.get(signal);
}
