import { KitError } from "../../../base/kit-error.ts";
import { type ErrorCode, errorCodes } from "../../../protocol/error-code.ts";
import type { EventError } from "../../../protocol/event.ts";

/** What a record says of an error: the text of a `KitError` is safe for any caller, that of others is not. */
export function toEventError(error: unknown): EventError {
  if (error instanceof KitError && isErrorCode(error.code)) {
    return { type: error.code, message: error.message };
  }
  return { type: "internal_error", message: "The handler failed." };
}

function isErrorCode(code: string): code is ErrorCode {
  return Object.hasOwn(errorCodes, code);
}

/** The default of `EngineHandlers.isRetryable`. */
export function mayPass(error: unknown): boolean {
  return error instanceof KitError && isErrorCode(error.code) && errorCodes[error.code].retryable;
}
