import { onAbort } from "../base/abort.ts";
import { longestTimerMs } from "../base/clock.ts";
import { graceMs } from "./end-group.ts";

/** Why a process was stopped: its time was over, its caller gave up, or it wrote too much. */
export type StopReason = "timeout" | "abort" | "flood";

export interface StopConditions {
  readonly timeoutMs: number;
  /** Any of these stops the process. */
  readonly signals: readonly (AbortSignal | undefined)[];
}

export interface Stop {
  /** Stops the process, unless it was stopped before. */
  now(why: StopReason): void;
  /** The first reason; undefined for a process that was not stopped. */
  reason(): StopReason | undefined;
  /** Ends the watch. The caller calls it when the process has ended. */
  release(): void;
}

/** Stops a process, once, when its time is over or a signal fires. `stop` gives what `release` has to undo. */
export function stopOn({ timeoutMs, signals }: StopConditions, stop: () => () => void): Stop {
  let reason: StopReason | undefined;
  let undo: (() => void) | undefined;
  const now = (why: StopReason): void => {
    if (reason !== undefined) return;
    reason = why;
    undo = stop();
  };
  const timer = setTimeout(() => now("timeout"), Math.min(timeoutMs, longestTimerMs));
  const listening = signals.map((signal) => onAbort(signal, () => now("abort")));
  return {
    now,
    reason: () => reason,
    release() {
      clearTimeout(timer);
      for (const end of listening) end();
      undo?.();
    },
  };
}

/** Asks a process to end, and kills it after a moment; the function that comes back withdraws that. */
export function terminate(target: { signal(name: "SIGTERM" | "SIGKILL"): void }): () => void {
  target.signal("SIGTERM");
  const insist = setTimeout(() => target.signal("SIGKILL"), graceMs);
  return () => clearTimeout(insist);
}
