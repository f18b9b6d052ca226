import { KitError } from "../base/kit-error.ts";

/** What an append at another position than the session's is refused with. */
export function conflict(cause?: unknown): KitError {
  return new KitError({
    code: "conflict",
    message: "Another writer has changed this session.",
    hint: "Open the session again and repeat the call.",
    ...(cause === undefined ? {} : { cause }),
  });
}
