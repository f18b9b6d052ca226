import { isoTime } from "../base/clock.ts";
import { KitError } from "../base/kit-error.ts";

/** The fields of an error about a store that cannot be used for now. */
export interface StoreOutage {
  /** "The session store" */
  readonly store: string;
  readonly reason: string;
  readonly hint: string;
  /** Start of the outage, in ms since 1970; default: now. */
  readonly since?: number | undefined;
  readonly cause?: unknown;
}

/** Workers that wait for a store ask it again within that time; callers are told to retry after it. */
const retryAfterS = 5;

/**
 * The error of a store that cannot be used for now. A worker that meets it waits for as long as the outage lasts and counts no
 * attempt; it recognises the outage by this code alone. `meta` names the store and the start of the outage.
 */
export function storeUnavailable({
  store,
  reason,
  hint,
  since,
  cause,
}: StoreOutage): KitError<"store_unavailable"> {
  return new KitError({
    code: "store_unavailable",
    message: `${store} cannot be used: ${reason}.`,
    hint,
    meta: { store, since: isoTime(since ?? Date.now()), retry_after_s: retryAfterS },
    cause,
  });
}

export function isStoreUnavailable(error: unknown): error is KitError {
  return error instanceof KitError && error.code === "store_unavailable";
}
