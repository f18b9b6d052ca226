import { isoTime } from "../../base/clock.ts";
import { isRetryableCode } from "../../protocol/error-code.ts";
import type { EventError } from "../../protocol/event.ts";
import { outageOf } from "../../protocol/outage.ts";
import { NotBegun } from "../cluster.ts";
import type { Arrival, EngineHandlers } from "../contract.ts";
import { parseStored } from "./stored-rows.ts";

const firstMs = 250;
const longestMs = 5_000;

/** The pause before the next attempt to reach an unavailable store, in ms: doubled each time, of which half is random. */
export function outagePause(times: number): number {
  return Math.min(longestMs, firstMs * 2 ** Math.min(times, 10)) * (0.5 + Math.random() / 2);
}

/**
 * Whether work failed because of an outage, of a store or of this process, which is passed to the handlers' `onOutage`, or
 * because this process is stopping.
 */
export function isOutage(error: unknown, id: string, { onOutage }: EngineHandlers): boolean {
  if (error instanceof NotBegun) return true;
  const outage = outageOf(error);
  if (outage === undefined) return false;
  try {
    onOutage?.(outage, id);
  } catch {
    // A listener that throws must not end the wait.
  }
  return true;
}

/** The receipt of earlier work for a request with the same idempotency key: it tells whether the work has failed or was cancelled. */
export function earlierReceipt({
  accepted_at,
  status,
  error,
}: {
  readonly accepted_at: number;
  readonly status: string;
  readonly error: string | null;
}): { readonly accepted_at: string; readonly error?: EventError } {
  const receipt = { accepted_at: isoTime(accepted_at) };
  if (status === "cancelled") return { ...receipt, error: { type: "aborted", message: "It was cancelled." } };
  return status === "failed" && error !== null
    ? { ...receipt, error: parseStored(error) as EventError }
    : receipt;
}

/** When a request came, by a clock that shows `now` at this moment. */
export function arrivalOf({ received_at }: Arrival, now: number): number {
  return received_at === undefined ? now : Math.ceil(now - (performance.now() - received_at));
}

/**
 * Whether a request with the same idempotency key repeats ended work: the work failed with a retryable code, or was cancelled before
 * the request came, at `since` (ms since 1970). A request that was under way then, in a process that was frozen, does not begin
 * again what a person or a program has cancelled meanwhile.
 */
export function isNoAnswer(
  {
    status,
    error,
    ended_at,
  }: { readonly status: string; readonly error: string | null; readonly ended_at: number | null },
  since: number,
): boolean {
  if (status === "cancelled") return (ended_at ?? 0) <= since;
  if (status !== "failed" || error === null) return false;
  const { type } = parseStored(error) as EventError;
  return isRetryableCode(type);
}
