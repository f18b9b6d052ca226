import type { KitError } from "../../base/kit-error.ts";
import { type RemoteReason, remoteError } from "../remote/remote-error.ts";

export type RunloopSdk = typeof import("@runloop/api-client");
export type RunloopClient = InstanceType<RunloopSdk["Runloop"]>;

export const vendor = "runloop";
export const keyHint = "Set RUNLOOP_API_KEY.";

/** What the vendor's package has thrown, as kit's error. */
export function toRemote(
  sdk: RunloopSdk,
  error: unknown,
  reason: RemoteReason = reasonFor(sdk, error),
): KitError {
  const waitS = error instanceof sdk.APIError ? Number(error.headers?.["retry-after"]) : Number.NaN;
  return remoteError(vendor, reason, {
    cause: error,
    ...(reason === "key" ? { hint: keyHint } : {}),
    ...(waitS > 0 ? { retryAfterS: waitS } : {}),
  });
}

export function reasonFor(sdk: RunloopSdk, error: unknown): RemoteReason {
  if (!(error instanceof sdk.APIError)) return "unreachable";
  const { status, message } = error;
  const isQuota = /quota|concurren|maximum|limit (?:of|reached|exceeded)/i.test(message);
  switch (status) {
    case undefined:
    case 408:
      return "unreachable";
    case 401:
      return "key";
    case 402:
      return "quota";
    case 403:
      return isQuota ? "quota" : "key";
    case 404:
    case 410:
      return "gone";
    case 429:
      return isQuota ? "quota" : "busy";
    default:
      return status < 500 ? "refused" : "unreachable";
  }
}

/** Whether nothing of a request can have arrived. */
export function wasRefused(error: unknown): boolean {
  for (let at = error, depth = 0; at instanceof Error && depth < 5; at = at.cause, depth += 1)
    if (/ECONNREFUSED|ENOTFOUND|EAI_AGAIN/.test(at.message)) return true;
  return false;
}
