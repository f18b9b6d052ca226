import { type Clock, isoTime } from "../../base/clock.ts";
import type { ToolCallPart, ToolMessage, ToolResultPart, UserMessage } from "../../protocol/message.ts";
import type { SessionEntry } from "../../protocol/session-entry.ts";
import type { SessionState } from "./session-state.ts";

/**
 * The entry with a result for every tool call that has none; undefined if all calls have one. A killed process
 * leaves such calls behind, and providers refuse a history with them.
 */
export function closingEntry(
  state: SessionState,
  { id, clock }: Pick<RebasePlace, "id" | "clock">,
): SessionEntry | undefined {
  const last = state.messages.at(-1);
  if (last?.role !== "assistant") return undefined;
  const content = last.content.flatMap((part) => (part.type === "tool_call" ? [outcomeUnknown(part)] : []));
  if (content.length === 0) return undefined;
  const message = { role: "tool", content, timestamp: isoTime(clock.now()) } as const;
  return { version: 1, type: "message", operation_id: id, message };
}

/** The text of a result whose call a process was about to run, or was running, when it ended. */
export const outcomeUnknownText =
  "The process ended while this call was running: its outcome is unknown. Check what it did before you repeat it.";

/** A result for a call that a process was about to run, or was running, when it ended. */
function outcomeUnknown(call: ToolCallPart): ToolResultPart {
  return { ...notRun(call, outcomeUnknownText), outcome: "unknown" };
}

/** A result for a call that was not run. */
export function notRun(call: ToolCallPart, text: string): ToolResultPart {
  return {
    type: "tool_result",
    tool_call_id: call.tool_call_id,
    tool: call.tool,
    content: [{ type: "text", text }],
    is_error: true,
  };
}

export interface RebasePlace {
  /** The state, including the other writers' entries. */
  readonly state: SessionState;
  /** The operation that appends. */
  readonly id: string;
  readonly clock: Pick<Clock, "now">;
}

/**
 * Rewrites entries of an operation so that they can follow other writers' entries: an answer follows a line that says
 * it belongs to an earlier message; results of calls, which the other writers have closed, become text.
 */
export function afterOthers(
  entries: readonly SessionEntry[],
  others: readonly SessionEntry[],
  place: RebasePlace,
): readonly SessionEntry[] {
  const [first, ...rest] = entries;
  if (first?.type === "compaction") {
    // The other compaction may have removed more than this one summarizes.
    return others.some(({ type }) => type === "compaction") ? rest : entries;
  }
  if (first?.type !== "message" || !others.some(({ type }) => type === "message")) return entries;
  const { message } = first;
  if (message.role === "user") return entries;
  // A writer that appends a message closes the calls it finds open, so the calls of this operation have results by now.
  const closing = closingEntry(place.state, place);
  const before = closing === undefined ? [] : [closing];
  return message.role === "tool"
    ? [...before, resumeEntry(`${earlier} ${lateResults(message)}`, place), ...rest]
    : [...before, resumeEntry(`${earlier} ${answerNow}`, place), ...entries];
}

const earlier =
  "The conversation went on before you had answered an earlier message of the user, which has no answer yet.";
const answerNow = "Answer it now.";

/** The request to answer an input that other work has overtaken; `input` if the context no longer has it. */
export function askAgain(input: string | undefined): string {
  return input === undefined ? `${earlier} ${answerNow}` : `${earlier} ${answerNow} It was:\n\n${input}`;
}

function lateResults({ content }: ToolMessage): string {
  const results = content.map((result) => `- ${result.tool}: ${textIn(result)}`);
  return `The calls that you had made for it have ended meanwhile, with these results:\n${results.join("\n")}\nGo on with it now.`;
}

function textIn({ content }: ToolResultPart): string {
  return content.map((part) => (part.type === "text" ? part.text : `[image ${part.media_type}]`)).join("");
}

function resumeEntry(text: string, { id, clock }: RebasePlace): SessionEntry {
  const message: UserMessage = {
    role: "user",
    content: [{ type: "text", text }],
    timestamp: isoTime(clock.now()),
    source: "resume",
  };
  return { version: 1, type: "message", message, operation_id: id };
}
