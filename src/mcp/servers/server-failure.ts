/** The outcome of a request that got no answer. */
export type Outcome =
  /** The server never got it. */
  | "not_sent"
  /** The server refused it, or answered with an error: it was not done. */
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
 * Why a server could not be used. `message` is a sentence that begins with what the server did ("It did
 * not answer within 5 seconds."), and is fit for a model and for a log.
 */
export class ServerFailure extends Error {
  readonly outcome: Outcome;
  /** The connection is of no use any more; the next call needs a new one. */
  readonly isLost: boolean;
  /** It took too long; whether it ever answers is open. */
  readonly isTimeout: boolean;
  /** It sent more than it may, and was cut off for that. */
  readonly isFlood: boolean;
  /** How long it asks to be left alone, in milliseconds; undefined where it does not. */
  readonly retryAfterMs: number | undefined;
  /** More for the person who configured the server: what it printed last, perhaps. */
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

/** A failure to do something in time: "It did not answer within 2 seconds." */
export function tooSlow(what: string, ms: number, options: ServerFailureOptions): ServerFailure {
  const seconds = ms / 1000;
  return new ServerFailure(
    `It did not ${what} within ${seconds} second${seconds === 1 ? "" : "s"}.`,
    options,
  );
}

/** Why the notifications of a server are not waited for any more. */
export function closedTooOften(): ServerFailure {
  return new ServerFailure("It closes them again and again.", { outcome: "refused" });
}
