import { KitError } from "../../base/kit-error.ts";

/**
 * Why a vendor did not do what it was asked:
 *
 * - `lost`: the connection broke, and what was asked may have been done;
 * - `detached`: the machine does not answer (it paused, or moved), and nothing was done: attach again;
 * - `gone`: there is no such machine any more;
 * - `busy`: too many requests at a time;
 * - `quota`: the account has as many machines, or as much of something, as it may;
 * - `key`: the key is missing, or was refused;
 * - `refused`: the vendor will not do this, however often it is asked;
 * - `unreachable`: it could not be asked, or has troubles of its own.
 */
export type RemoteReason =
  | "lost"
  | "detached"
  | "gone"
  | "busy"
  | "quota"
  | "key"
  | "refused"
  | "unreachable";

const codes: Readonly<Record<RemoteReason, string>> = {
  lost: "unavailable",
  detached: "unavailable",
  gone: "unavailable",
  busy: "too_many_requests",
  quota: "forbidden",
  key: "forbidden",
  refused: "invalid_request",
  unreachable: "unavailable",
};

const messages: Readonly<Record<RemoteReason, string>> = {
  lost: "The connection to the machine was lost: the outcome is unknown.",
  detached: "The machine does not answer.",
  gone: "The machine of this sandbox is gone, with the files that were on it. The next call starts a new one.",
  busy: "The vendor takes no more requests for now.",
  quota: "The vendor gives this account no more machines.",
  key: "The vendor does not take the key.",
  refused: "The vendor refuses this machine.",
  unreachable: "The vendor cannot be reached.",
};

const hints: Partial<Record<RemoteReason, string>> = {
  quota:
    "'kit sandboxes list' shows the machines of this project, 'kit sandboxes prune' removes those without a session.",
};

interface RemoteErrorDetails {
  readonly cause?: unknown;
  readonly hint?: string | undefined;
  /** When to try again, in seconds, where the vendor says. */
  readonly retryAfterS?: number;
}

/**
 * An error of a vendor as kit's: its code says whether to try again, `meta.reason` why. What the vendor said is
 * in the hint, for the person at the terminal; the message can go anywhere.
 */
export function remoteError(
  vendor: string,
  reason: RemoteReason,
  { cause, hint, retryAfterS }: RemoteErrorDetails = {},
): KitError {
  const vendorMessage =
    cause instanceof Error && cause.message !== "" ? cause.message.split("\n")[0]?.slice(0, 300) : undefined;
  const hintParts = [
    hint ?? hints[reason],
    vendorMessage === undefined ? undefined : `${vendor} says: ${vendorMessage}`,
  ];
  const fullHint = hintParts.filter((part) => part !== undefined).join(" ");
  return new KitError({
    code: codes[reason],
    message: `${vendor}: ${messages[reason]}`,
    meta: { reason, retry_after_s: retryAfterS },
    ...(fullHint === "" ? {} : { hint: fullHint }),
    cause,
  });
}

/** Why, of an error that `remoteError` made; undefined of any other. */
export function reasonOf(error: unknown): RemoteReason | undefined {
  if (!(error instanceof KitError)) return undefined;
  const reason = error.meta?.reason;
  return typeof reason === "string" && isReason(reason) ? reason : undefined;
}

const isReason = (text: string): text is RemoteReason => Object.hasOwn(codes, text);
