import { KitError } from "../../../base/kit-error.ts";
import { isErrorCode, isRetryableCode } from "../../../protocol/error-code.ts";
import type { EventError } from "../../../protocol/event.ts";
import type { EngineHandlers } from "../../contract.ts";

/**
 * What a record says of an error: the text of a `KitError` is safe for any caller. Of others it is not: what they
 * say is the cause, as far as the handlers know how to tell it.
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
