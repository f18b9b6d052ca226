import { isoTime } from "../base/clock.ts";
import { KitError } from "../base/kit-error.ts";

/**
 * All error codes, each with its HTTP status and whether the same call can
 * succeed later. A code is the `type` of the error envelope on every route.
 */
export const errorCodes = {
  invalid_json: { status: 400, retryable: false },
  invalid_request: { status: 400, retryable: false },
  unauthorized: { status: 401, retryable: false },
  invalid_signature: { status: 401, retryable: false },
  stale_timestamp: { status: 401, retryable: false },
  forbidden: { status: 403, retryable: false },
  not_found: { status: 404, retryable: false },
  guideline_not_found: { status: 404, retryable: false },
  spec_not_found: { status: 404, retryable: false },
  method_not_allowed: { status: 405, retryable: false },
  conflict: { status: 409, retryable: false },
  payload_too_large: { status: 413, retryable: false },
  unsupported_media_type: { status: 415, retryable: false },
  too_many_requests: { status: 429, retryable: true },
  agent_not_found: { status: 404, retryable: false },
  workflow_not_found: { status: 404, retryable: false },
  run_not_found: { status: 404, retryable: false },
  agent_not_webhook: { status: 404, retryable: false },
  aborted: { status: 409, retryable: true },
  lease_lost: { status: 409, retryable: true },
  replay_mismatch: { status: 500, retryable: false },
  typed_output: { status: 502, retryable: true },
  python_error: { status: 422, retryable: false },
  budget_exceeded: { status: 429, retryable: false },
  context_overflow: { status: 502, retryable: false },
  model_error: { status: 502, retryable: true },
  model_timeout: { status: 504, retryable: true },
  internal_error: { status: 500, retryable: false },
  unavailable: { status: 503, retryable: true },
  store_unavailable: { status: 503, retryable: true },
} as const;

export type ErrorCode = keyof typeof errorCodes;

/** Returns whether a code belongs to kit: errors of a project's code can have any code. */
export function isErrorCode(code: string): code is ErrorCode {
  return Object.hasOwn(errorCodes, code);
}

/** Returns whether the same call can succeed later. */
export function isRetryableCode(code: string): boolean {
  return isErrorCode(code) && errorCodes[code].retryable;
}

/**
 * Returns whether the same call can succeed later, by the code of a `KitError`; false for any other error, and for one with
 * `meta.retryable: false`, such as that of a model whose provider refuses the key.
 */
export function isRetryableError(error: unknown): boolean {
  return error instanceof KitError && isRetryableCode(error.code) && !isPermanent(error);
}

/** Whether an error says itself that the same call cannot succeed later. */
export function isPermanent(error: unknown): boolean {
  return error instanceof KitError && error.meta?.retryable === false;
}

/** The details of a temporary outage of a store. */
export interface StoreOutage {
  /** Such as "The session store". */
  readonly store: string;
  readonly reason: string;
  readonly hint: string;
  /** Start of the outage, in ms since 1970; default: now. */
  readonly since?: number | undefined;
  readonly cause?: unknown;
}

/** The delay after which callers should retry; waiting workers try the store again within that time. */
const retryAfterS = 5;

/**
 * Creates the error of a store that is temporarily unavailable. A worker that gets it waits until the outage ends and counts no
 * attempt; only this code marks an outage. `meta` names the store and the start of the outage.
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
