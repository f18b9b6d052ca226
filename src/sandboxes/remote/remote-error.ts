import { KitError } from "../../base/kit-error.ts";

/**
 * Why a vendor did not fulfil a request:
 *
 * - `lost`: the connection broke, and the request may have been fulfilled;
 * - `detached`: the machine does not answer (it paused or moved), and nothing was done: attach again;
 * - `gone`: the machine no longer exists;
 * - `busy`: too many requests;
 * - `quota`: the account has reached a limit;
 * - `key`: the key is missing or was refused;
 * - `refused`: the vendor refuses the request, and a retry cannot help;
 * - `unreachable`: the vendor cannot be reached or has an internal error.
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
  lost: "The connection to the machine was lost, so the outcome is unknown.",
  detached: "The machine does not answer.",
  gone: "The machine of this sandbox no longer exists, and its files are lost. The next call starts a new machine.",
  busy: "The vendor accepts no more requests at the moment.",
  quota: "The vendor refuses this account more machines.",
  key: "The vendor does not accept the key.",
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
  /** Seconds after which to try again, if the vendor reports them. */
  readonly retryAfterS?: number;
}

/**
 * Creates kit's error for a vendor's failure: its code tells whether to retry, and `meta.reason` is the reason.
 * The vendor's own message goes into the hint, for the person at the terminal; the message is safe for any caller.
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

/** The reason of an error that `remoteError` created; `undefined` for any other error. */
export function reasonOf(error: unknown): RemoteReason | undefined {
  if (!(error instanceof KitError)) return undefined;
  const reason = error.meta?.reason;
  return typeof reason === "string" && isReason(reason) ? reason : undefined;
}

const isReason = (text: string): text is RemoteReason => Object.hasOwn(codes, text);

/** Whether the connection was refused, so that the vendor cannot have received the request. */
export function wasNotSent(error: unknown): boolean {
  for (let at = error, depth = 0; at instanceof Error && depth < 5; at = at.cause, depth += 1) {
    const code = "code" in at ? String(at.code) : "";
    if (/ECONNREFUSED|ENOTFOUND|EAI_AGAIN/.test(`${code} ${at.message}`)) return true;
  }
  return false;
}
