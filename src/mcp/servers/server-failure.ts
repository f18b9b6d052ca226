/** The outcome of a failed request. */
export type Outcome =
  /** The server did not receive it. */
  | "not_sent"
  /** The server refused it or answered with an error, so it was not done. */
  | "refused"
  /** The server may or may not have done it. */
  | "unknown";

interface ServerFailureOptions {
  readonly outcome: Outcome;
  readonly isLost?: boolean;
  readonly isTimeout?: boolean;
  readonly isFlood?: boolean;
  readonly retryAfterMs?: number | undefined;
  readonly details?: string;
  readonly cause?: unknown;
}

/**
 * Why a server could not be used. `message` is a sentence about the server ("It did not answer within 5 seconds."),
 * safe for models and logs.
 */
export class ServerFailure extends Error {
  readonly outcome: Outcome;
  /** The connection is unusable; the next call needs a new one. */
  readonly isLost: boolean;
  /** The server did not answer in time; it may still answer later. */
  readonly isTimeout: boolean;
  /** The server exceeded its rate limit and was disconnected. */
  readonly isFlood: boolean;
  /** Milliseconds that the server asks to wait; `undefined` if it does not ask. */
  readonly retryAfterMs: number | undefined;
  /** Details for the person who configured the server, such as the end of its stderr. */
  readonly details: string;

  constructor(message: string, options: ServerFailureOptions) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.outcome = options.outcome;
    this.isLost = options.isLost ?? false;
    this.isTimeout = options.isTimeout ?? false;
    this.isFlood = options.isFlood ?? false;
    this.retryAfterMs = options.retryAfterMs;
    this.details = options.details ?? "";
  }
}

/** Creates the failure of a timeout: "It did not answer within 2 seconds." */
export function timedOut(action: string, ms: number, options: ServerFailureOptions): ServerFailure {
  const seconds = ms / 1000;
  return new ServerFailure(
    `It did not ${action} within ${seconds} second${seconds === 1 ? "" : "s"}.`,
    options,
  );
}

/** The failure of a server that closes its stream of notifications too often. */
export function closedTooOften(): ServerFailure {
  return new ServerFailure("It closes their stream repeatedly.", { outcome: "refused" });
}
