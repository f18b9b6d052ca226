import {
  type TypedOutputAsked,
  type TypedOutputAttempt,
  TypedOutputError,
} from "../agents/output/typed-output.ts";
import { KitError } from "../base/kit-error.ts";
import { defined } from "../base/record.ts";

type Recorded = TypedOutputAsked & { readonly attempts?: readonly TypedOutputAttempt[] };

/** A journal keeps an error's code, texts and `meta`: the answers that did not fit go along there. */
export function toRecorded(error: unknown): unknown {
  if (!(error instanceof TypedOutputError)) return error;
  const { code, message, hint, attempts, meta } = error;
  const recorded = { code, message, meta: { ...meta, attempts } };
  return new KitError(hint === undefined ? recorded : { ...recorded, hint });
}

/** The error as the operation threw it: the same in a replay as the first time. */
export function fromRecorded(error: unknown): unknown {
  if (!(error instanceof KitError) || error.code !== "typed_output") return error;
  // Only `toRecorded` puts them there.
  const { attempts, agent, skill } = (error.meta ?? {}) as Recorded;
  if (attempts === undefined) return error;
  return new TypedOutputError(attempts, defined({ agent, skill }));
}
