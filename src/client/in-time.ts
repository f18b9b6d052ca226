import { withDeadline } from "../base/abort.ts";
import { longestTimerMs } from "../base/clock.ts";
import { KitError } from "../base/kit-error.ts";

/** Returns a signal that fires after `ms`; undefined beyond the longest timer, 25 days. */
export function timeoutSignal(ms: number | undefined): AbortSignal | undefined {
  return ms === undefined || ms > longestTimerMs ? undefined : AbortSignal.timeout(Math.ceil(ms));
}

/**
 * Runs work with a signal that fires with the given signals and after `timeoutMs`, if set. Throws `unavailable` at that
 * limit.
 */
export async function inTime<Value>(
  timeoutMs: number | undefined,
  signals: readonly (AbortSignal | undefined)[],
  work: (signal: AbortSignal) => Promise<Value>,
): Promise<Value> {
  return await withDeadline(work, { ms: timeoutMs, signal: anyOf(signals), onTimeout: timedOut });
}

/** Combines signals to one; without signals, it never fires. */
export function anyOf(signals: readonly (AbortSignal | undefined)[]): AbortSignal {
  const present = signals.filter((signal) => signal !== undefined);
  return present.length === 1 && present[0] !== undefined ? present[0] : AbortSignal.any(present);
}

export function timedOut(): KitError {
  return new KitError({ code: "unavailable", message: "The server did not answer in time." });
}
