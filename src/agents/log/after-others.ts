import { type Clock, isoTime } from "../../base/clock.ts";
import type { ToolMessage, ToolResultPart, UserMessage } from "../../protocol/message.ts";
import type { SessionEntry } from "../../protocol/session-entry.ts";

export interface RebaseContext {
  /** The results of calls that have none once the other writers' entries are read. */
  readonly closing: SessionEntry | undefined;
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
  context: RebaseContext,
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
  const before = context.closing === undefined ? [] : [context.closing];
  return message.role === "tool"
    ? [...before, resumeEntry(`${earlier} ${lateResults(message)}`, context), ...rest]
    : [...before, resumeEntry(`${earlier} ${answerNow}`, context), ...entries];
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

function resumeEntry(text: string, { id, clock }: RebaseContext): SessionEntry {
  const message: UserMessage = {
    role: "user",
    content: [{ type: "text", text }],
    timestamp: isoTime(clock.now()),
    source: "resume",
  };
  return { version: 1, type: "message", message, operation_id: id };
}
