import { withDeadline } from "../base/abort.ts";
import { longestTimerMs } from "../base/clock.ts";
import { KitError } from "../base/kit-error.ts";

/** A signal that fires after so many ms; undefined where no timer can keep the limit: 25 days and more are none. */
export function timeoutSignal(ms: number | undefined): AbortSignal | undefined {
  return ms === undefined || ms > longestTimerMs ? undefined : AbortSignal.timeout(Math.ceil(ms));
}

/**
 * Does work that has to end in time: gives it a signal that fires with the given ones, and after
 * `timeoutMs`, if there is such a limit. Throws `unavailable` when the time is over.
 */
export async function inTime<Value>(
  timeoutMs: number | undefined,
  signals: readonly (AbortSignal | undefined)[],
  work: (signal: AbortSignal) => Promise<Value>,
): Promise<Value> {
  return await withDeadline(work, { ms: timeoutMs, signal: anyOf(signals), onTimeout: timedOut });
}

/** One signal of several; one that never fires where there is none. */
export function anyOf(signals: readonly (AbortSignal | undefined)[]): AbortSignal {
  const given = signals.filter((signal) => signal !== undefined);
  return given.length === 1 && given[0] !== undefined ? given[0] : AbortSignal.any(given);
}

export function timedOut(): KitError {
  return new KitError({ code: "unavailable", message: "The server did not answer in time." });
}
