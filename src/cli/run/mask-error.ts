import { KitError } from "../../base/kit-error.ts";

/** An error with secrets taken out of all that it says, its causes included: providers repeat keys. */
export function maskError(error: unknown, mask: (text: string) => string): unknown {
  if (!(error instanceof Error)) return typeof error === "string" ? mask(error) : error;
  const cause = error.cause === undefined ? undefined : maskError(error.cause, mask);
  const masked =
    error instanceof KitError
      ? new KitError({
          code: error.code,
          message: mask(error.message),
          ...(error.hint === undefined ? {} : { hint: mask(error.hint) }),
          ...(error.meta === undefined ? {} : { meta: error.meta }),
          ...(cause === undefined ? {} : { cause }),
        })
      : new Error(mask(error.message), { cause });
  masked.stack = mask(error.stack ?? "");
  return masked;
}
