import type { KitError } from "../../base/kit-error.ts";
import type { ErrorCause } from "../../protocol/error-cause.ts";
import type { EventBody, EventError } from "../../protocol/event.ts";
import type { NextAttempt, OperationAttempt } from "../log/suspension.ts";

export interface FailureOptions {
  readonly attempt: OperationAttempt | undefined;
  readonly emit: (body: EventBody, turnId?: string) => void;
  toEventError(error: unknown): EventError;
}

interface Report {
  readonly error: unknown;
  readonly next: NextAttempt | undefined;
}

/** Reports the errors of an operation, each once, and says whether its engine tries the operation again. */
export class OperationFailures {
  readonly #options: FailureOptions;
  #last: Report | undefined;

  constructor(options: FailureOptions) {
    this.#options = options;
  }

  /** The cause that events report. */
  causeOf(error: KitError): ErrorCause | undefined {
    return this.#options.toEventError(error).cause;
  }

  /**
   * Emits the `error` event of an error that ends the operation, unless it was reported before, by the turn that failed.
   * Returns the engine's next attempt; undefined if the operation has failed for good.
   */
  async report(error: unknown, turnId?: string): Promise<NextAttempt | undefined> {
    if (this.#last !== undefined && this.#last.error === error) return this.#last.next;
    const options = this.#options;
    const next = await options.attempt?.planRetry(error);
    this.#last = { error, next };
    const again =
      next === undefined
        ? { will_retry: false }
        : { will_retry: true, retry_in_ms: Math.max(0, Math.ceil(next.delayMs)) };
    options.emit({ type: "error", error: options.toEventError(error), ...again }, turnId);
    return next;
  }
}
