import { toSentence } from "../../base/error-text.ts";
import { explainError } from "../../protocol/error-cause.ts";
import type { EventError, KitEvent } from "../../protocol/event.ts";
import type { Style } from "./output.ts";

/** An event on one line, before masking and cutting. */
export interface EventLine {
  readonly text: string;
  readonly style?: Style;
  /** The outcome of a call: indented below the call. */
  readonly isResult?: true;
}

type ToldEvent = Extract<
  KitEvent,
  { readonly type: "tool_start" | "tool_end" | "task_start" | "compaction_end" | "error" | "log" }
>;

/**
 * Calls, results, tasks, retries and logs, as the log of a server and `kit run` print them. A result needs the name of its tool where
 * other calls can stand between the two.
 */
export function eventLine(event: ToldEvent, { namesTool = true } = {}): EventLine {
  switch (event.type) {
    case "tool_start":
      return { text: `→ ${callLine(event.tool, event.args)}`, style: "cyan" };
    case "tool_end": {
      const took = event.duration_ms < 1_000 ? "" : ` (${(event.duration_ms / 1_000).toFixed(1)} s)`;
      const name = namesTool ? `${event.tool}: ` : "";
      const result = `${name}${resultLine(event.result, event.is_error)}${took}`;
      return {
        text: event.is_error ? `✗ ${result}` : result,
        style: event.is_error ? "red" : "dim",
        isResult: true,
      };
    }
    case "task_start":
      return { text: `⤷ ${event.task_agent ?? event.role ?? "task"}: ${event.prompt}`, style: "magenta" };
    case "compaction_end": {
      const [before, after] = [event.tokens_before, event.tokens_after].map((one) =>
        one.toLocaleString("en"),
      );
      return { text: `history shortened: ${before} → ${after} tokens`, style: "dim" };
    }
    case "error":
      return {
        text: event.will_retry ? `${toSentence(whyOf(event.error))} ${nextLine(event)}` : whyOf(event.error),
        style: event.will_retry ? "yellow" : "red",
      };
    case "log": {
      const { level, message, data, operation_id, run_id } = event;
      // The data of a workflow's log is printed for its author; data beside a message of kit is for machines.
      const isForAuthor = data !== undefined && operation_id === run_id;
      return {
        text: isForAuthor ? `${message} ${JSON.stringify(data)}` : message,
        ...(level === "info" ? {} : { style: "yellow" }),
      };
    }
  }
}

/** A provider's words do not say what failed. */
function whyOf(error: EventError): string {
  const words = explainError(error);
  return error.cause?.name === "ProviderError" ? `${error.message} ${words}` : words;
}

/** The next step after a failed attempt. */
function nextLine({ next_model, retry_in_ms = 0 }: Extract<KitEvent, { type: "error" }>): string {
  if (next_model !== undefined) return `Asking ${next_model}.`;
  return `Trying again in ${(retry_in_ms / 1_000).toFixed(1)} s.`;
}

/** The most telling arguments of a call, in order of preference: the first one is printed without its name. */
const telling = ["command", "path", "file", "files", "pattern", "q", "query", "prompt", "name", "tool"];

/** Longer texts among the arguments are replaced by their length. */
const maxValue = 120;

/** A tool call on one line: `read src/app.ts limit=40`, `bash npm test`. */
export function callLine(tool: string, args: unknown): string {
  if (typeof args !== "object" || args === null || Array.isArray(args))
    return args === undefined ? tool : `${tool} ${valueText(args)}`;
  const entries = Object.entries(args);
  const main = telling.find((name) => entries.some(([key]) => key === name));
  const words = entries
    .sort(([left], [right]) => Number(right === main) - Number(left === main))
    .map(([key, value]) => (key === main ? valueText(value) : `${key}=${valueText(value)}`));
  return [tool, ...words].join(" ");
}

/** A tool's result on one line: its beginning and its size; for an error, its end. */
function resultLine(result: string, isError: boolean): string {
  const lines = result.split("\n").filter((line) => line.trim() !== "");
  const [first = "(nothing)"] = lines;
  const last = lines.at(-1);
  if (lines.length < 2 || last === undefined) return first;
  if (isError) return lines.length === 2 ? `${first} ${last}` : `${first} … ${last}`;
  return `${first} … ${lines.length - 1} more ${lines.length === 2 ? "line" : "lines"}`;
}

function valueText(value: unknown): string {
  if (typeof value === "string") {
    return value.length > maxValue || value.includes("\n")
      ? `(${value.length.toLocaleString("en")} characters)`
      : value;
  }
  if (Array.isArray(value) && value.every((item) => typeof item === "string")) return value.join(", ");
  const json = JSON.stringify(value) ?? String(value);
  return json.length > maxValue ? `${json.slice(0, maxValue)}…` : json;
}
