import { KitError, type KitErrorInit } from "../../../base/kit-error.ts";
import { isJson } from "./check-json.ts";

/** What a journal keeps of an error: all but its cause. */
type StoredError = Omit<KitErrorInit, "cause">;

/**
 * What a step throws at its run: the `KitError` that its work threw, else an `internal_error`, because
 * the text of a foreign error may hold what no caller is to see. It goes into the hint.
 */
export function toStepError(error: unknown, what: string): KitError {
  if (error instanceof KitError) return error;
  return new KitError({
    code: "internal_error",
    message: `${what} failed.`,
    hint: error instanceof Error ? error.message : String(error),
    cause: error,
  });
}

/** An error as the journal keeps it; details that are no JSON are left out. */
export function storeError({ code, message, hint, meta }: KitError): StoredError {
  return {
    code,
    message,
    ...(hint === undefined ? {} : { hint }),
    ...(meta === undefined || !isJson(meta) ? {} : { meta }),
  };
}

/** The error that `storeError` was given. */
export function loadError(stored: unknown): KitError {
  return new KitError(stored as StoredError);
}
