import { isoTime } from "../../../base/clock.ts";
import { type EventLog, runStream } from "../../contract.ts";
import type { RunRow } from "./run-rows.ts";

/**
 * Ends the stream of a run that was cancelled while nothing of it was at work: its handler, who says so as a
 * rule, is not there. A process that does not hold the lease cannot write it, and the stream just ends.
 */
export async function sayCancelled(events: EventLog, run: RunRow, now: number): Promise<void> {
  const { run_id, workflow, started_at, accepted_at } = run;
  const stream = runStream(run_id);
  try {
    events.append(stream, {
      type: "run_end",
      workflow,
      reason: "cancelled",
      is_error: true,
      is_aborted: true,
      duration_ms: now - (started_at ?? accepted_at),
      index: (await events.last(stream)) + 1,
      timestamp: isoTime(now),
      instance_id: run_id,
      operation_id: run_id,
      run_id,
    });
  } catch {
    // The run is cancelled all the same, and its record says so.
  }
}
