import { KitError } from "../../base/kit-error.ts";
import { isErrorCode, isRetryableCode } from "../../protocol/error-code.ts";
import type { EventError } from "../../protocol/event.ts";
import type { EngineHandlers } from "../contract.ts";

/**
 * The error of a record. The text of a `KitError` is safe for any caller. The text of other errors is not: it goes into
 * the cause, as far as `causeOf` gives one.
 */
export function toEventError(error: unknown, causeOf: EngineHandlers["causeOf"]): EventError {
  const cause = causeOf?.(error);
  const why = cause === undefined ? {} : { cause };
  if (error instanceof KitError) {
    const { code, message } = error;
    if (isErrorCode(code)) return { type: code, message, ...why };
  }
  return { type: "internal_error", message: "The handler failed.", ...why };
}

/** The default of `EngineHandlers.isRetryable`. */
export function mayPass(error: unknown): boolean {
  return error instanceof KitError && isRetryableCode(error.code);
}
