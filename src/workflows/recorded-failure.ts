import { type TypedOutputAttempt, TypedOutputError } from "../agents/output/typed-output.ts";
import { KitError } from "../base/kit-error.ts";

/** A journal keeps an error's code, texts and `meta`: the answers that did not fit go along there. */
export function toRecorded(error: unknown): unknown {
  if (!(error instanceof TypedOutputError)) return error;
  const { code, message, attempts } = error;
  return new KitError({ code, message, meta: { attempts }, cause: error });
}

/** The error as the operation threw it: the same in a replay as the first time. */
export function fromRecorded(error: unknown): unknown {
  if (!(error instanceof KitError) || error.code !== "typed_output") return error;
  // Only `toRecorded` puts them there.
  const attempts = error.meta?.attempts as readonly TypedOutputAttempt[] | undefined;
  return attempts === undefined ? error : new TypedOutputError(attempts);
}
