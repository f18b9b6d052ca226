import { isoTime } from "../../base/clock.ts";
import type { ToolMessage, ToolResultPart, UserMessage } from "../../protocol/message.ts";
import type { SessionEntry } from "../../protocol/session-entry.ts";
import { closingEntry } from "./closing-entry.ts";
import type { SessionState } from "./session-state.ts";

export interface RebasePlace {
  /** With what the others have added. */
  readonly state: SessionState;
  /** The operation whose entries are to follow. */
  readonly id: string;
  readonly now: () => number;
}

/**
 * Entries of an operation as they can stand behind what others have added to the session: an answer behind a line
 * that says it belongs to something earlier; results of calls, which the others have found without any, as text.
 */
export function afterOthers(
  entries: readonly SessionEntry[],
  others: readonly SessionEntry[],
  place: RebasePlace,
): readonly SessionEntry[] {
  const [first, ...rest] = entries;
  if (first?.type === "compaction") {
    // Theirs may have left more out of the context than this one sums up.
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

/** What asks for the answer to an input that others have gone past; `input` where the context no longer has it. */
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

function resumeEntry(text: string, { id, now }: RebasePlace): SessionEntry {
  const message: UserMessage = {
    role: "user",
    content: [{ type: "text", text }],
    timestamp: isoTime(now()),
    source: "resume",
  };
  return { version: 1, type: "message", message, operation_id: id };
}
