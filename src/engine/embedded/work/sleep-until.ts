import type { Clock } from "../../../base/clock.ts";

/** How late a wait may end after a machine was asleep, or its clock was set. */
const lookMs = 60_000;

/**
 * Sleeps until a time (ms since 1970); rejects with the signal's reason. A timer counts only while the machine
 * is awake, can count 24 days at most, and knows nothing of a clock that is set: so the clock is looked at
 * each minute.
 */
export async function sleepUntil(clock: Clock, at: number, signal: AbortSignal): Promise<void> {
  do await clock.sleep(Math.min(lookMs, Math.max(0, at - clock.now())), signal);
  while (clock.now() < at);
}
