import { KitError, type KitErrorInit } from "../../../base/kit-error.ts";
import { causeLine, type ErrorCause, fromErrorCause } from "../../../protocol/error-cause.ts";
import type { EngineHandlers } from "../../contract.ts";
import { isJson } from "./check-json.ts";

/** What a journal keeps of an error. */
type StoredError = Omit<KitErrorInit, "cause"> & { readonly cause?: ErrorCause };

/**
 * What a step throws at its run: the `KitError` that its work threw, else an `internal_error`, because
 * the text of a foreign error may hold what no caller is to see. It goes into the cause and the hint.
 */
export function toStepError(error: unknown, what: string): KitError {
  if (error instanceof KitError) return error;
  return new KitError({ code: "internal_error", message: `${what} failed.`, cause: error });
}

/** An error as the journal keeps it; details that are no JSON are left out. */
export function storeError(error: KitError, causeOf: EngineHandlers["causeOf"]): StoredError {
  const { code, message, meta } = error;
  const cause = causeOf?.(error);
  const hint = error.hint ?? (cause === undefined ? undefined : causeLine(cause));
  return {
    code,
    message,
    ...(hint === undefined ? {} : { hint }),
    ...(meta === undefined || !isJson(meta) ? {} : { meta }),
    ...(cause === undefined ? {} : { cause }),
  };
}

/** The error that `storeError` was given. */
export function loadError(stored: unknown): KitError {
  const { cause, ...init } = stored as StoredError;
  return new KitError(cause === undefined ? init : { ...init, cause: fromErrorCause(cause) });
}
