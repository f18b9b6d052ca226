import { explainError } from "../../protocol/error-cause.ts";
import type { EventError, KitEvent } from "../../protocol/event.ts";
import { type EventLine, eventLine } from "../print/event-line.ts";
import type { Output, Style } from "../print/output.ts";
import { waitingLine } from "../run/answer-approvals.ts";
import { safeLine, truncate } from "../text/safe-text.ts";

/** Longest line of a log, in columns. */
const maxWidth = 160;

/**
 * A log line for an event of agents and workflows: operations, tool calls, tasks, steps, logs and failures. Token
 * deltas are left out.
 */
export function createActivityLog({
  output,
  log,
  runId,
}: {
  readonly output: Pick<Output, "noteStyle">;
  readonly log: (text: string) => void;
  /** The run that the log belongs to; the run's own events are printed without its name. */
  readonly runId?: string;
}): (event: KitEvent) => void {
  return (event) => {
    const line = lineOf(event);
    if (line === undefined) return;
    const location = safeLine(placeOf(event, runId)).replace(/(?<=.)$/, " ");
    const indent = line.isResult === true ? "  " : "";
    const text = truncate(`${location}${indent}${safeLine(line.text)}`, maxWidth);
    log(line.style === undefined ? text : output.noteStyle(line.style, text));
  };
}

/** The owner of an event: `reviewer/42`, with its session where it is another than the default one. */
function placeOf({ agent, instance_id, session, run_id }: KitEvent, runId: string | undefined): string {
  // Events stored by an earlier version have "".
  if (agent === undefined || agent === "") return run_id === runId ? "" : (run_id ?? "");
  const instance = instance_id === runId ? agent : `${agent}/${instance_id}`;
  return session === "default" ? instance : `${instance}/${session}`;
}

function lineOf(event: KitEvent): EventLine | undefined {
  switch (event.type) {
    case "operation_start":
      return { text: event.operation_kind, style: "cyan" };
    case "operation": {
      const tokens = event.usage === undefined ? "" : `, ${event.usage.total_tokens} tokens`;
      return {
        text: `${event.operation_kind} ${endOf(event)} in ${seconds(event.duration_ms)}${tokens}`,
        style: styleOf(event) ?? "green",
      };
    }
    case "tool_start":
    case "tool_end":
    case "task_start":
    case "compaction_end":
    case "log":
      return eventLine(event);
    case "approval_request":
      return { text: waitingLine(event), style: "yellow" };
    case "approval":
      return { text: event.approved ? "approved" : "denied", style: "yellow" };
    case "error":
      return eventLine(event);
    case "run_start":
      return { text: `run of ${event.workflow}`, style: "cyan" };
    case "run_end":
      return {
        text: `run of ${event.workflow} ${endOf(event, "cancelled")} in ${seconds(event.duration_ms)}${reasonOf(event)}`,
        style: styleOf(event) ?? "green",
      };
    case "step_end":
      return {
        text: `step ${event.step} ${endOf(event)} in ${seconds(event.duration_ms)}${reasonOf(event)}`,
        style: styleOf(event) ?? "dim",
      };
    case "joined":
      return { text: "a message joins", style: "cyan" };
    // The result of the call or of the operation shows the same, or the event is for machines.
    case "agent_start":
    case "turn_request":
    case "turn":
    case "turn_end":
    case "idle":
    case "abort_requested":
    case "aborted":
    case "text_delta":
    case "reasoning_delta":
    case "tool_args_delta":
    case "source":
    case "file":
    case "tool_progress":
    case "command_start":
    case "command_end":
    case "task_end":
    case "gap":
    case "compaction_start":
    case "step_start":
      return undefined;
    default:
      event satisfies never;
      return undefined;
  }
}

type Ending = Pick<Extract<KitEvent, { type: "operation" }>, "is_error" | "is_aborted">;

function endOf({ is_error, is_aborted }: Ending, aborted = "aborted"): string {
  if (is_aborted === true) return aborted;
  return is_error ? "failed" : "done";
}

/** The error of a step or a run, behind the line about it. */
function reasonOf({ error }: { readonly error?: EventError | undefined }): string {
  return error === undefined ? "" : `: ${explainError(error)}`;
}

/** The style of failed work. */
function styleOf({ is_error, is_aborted }: Ending): Style | undefined {
  if (is_aborted === true) return "yellow";
  return is_error ? "red" : undefined;
}

function seconds(ms: number): string {
  return ms < 1_000 ? `${Math.round(ms)} ms` : `${(ms / 1_000).toFixed(1)} s`;
}
