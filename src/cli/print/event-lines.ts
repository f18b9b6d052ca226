import type { KitEvent } from "../../protocol/event.ts";

/** The arguments that tell most about a call, in order of preference: the first one stands without its name. */
const telling = ["command", "path", "file", "files", "pattern", "q", "query", "prompt", "name", "tool"];

/** Longer texts among the arguments are told by their length. */
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

/** A tool's result on one line: how it begins and how much there is; of a failure, how it ends. */
export function resultLine(result: string, isError: boolean): string {
  const lines = result.split("\n").filter((line) => line.trim() !== "");
  const [first = "(nothing)"] = lines;
  const last = lines.at(-1);
  if (lines.length < 2 || last === undefined) return first;
  if (isError) return lines.length === 2 ? `${first} ${last}` : `${first} … ${last}`;
  return `${first} … ${lines.length - 1} more ${lines.length === 2 ? "line" : "lines"}`;
}

/** The text of a log event on one line. */
export function logLine(event: Extract<KitEvent, { type: "log" }>): string {
  const { message, data, operation_id, run_id } = event;
  // The data of a workflow's log is for its author; beside a message of kit's own, data is for machines.
  return data === undefined || operation_id !== run_id ? message : `${message} ${JSON.stringify(data)}`;
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
