import type { Message, UserMessage } from "../../protocol/message.ts";
import type { ReceiptItem } from "../../protocol/receipt.ts";
import type { SessionEntry } from "../../protocol/session-entry.ts";
import { fromKept, instructionsWithout, isLeftOut, type KeptInstructions } from "./left-out-rules.ts";
import { forkNote, keptPlaceNote, type SessionState } from "./session-state.ts";

/** The origin of a session that repeats a turn of another session. */
export interface ForkOrigin {
  /** The session of the turn, of the same instance. */
  readonly session: string;
  readonly turn_id: string;
  /** The number of entries that the log had at the turn. */
  readonly log_position: number;
  /** The operation of the turn. */
  readonly operation_id: string;
  /** Rules that the new session leaves out: ids of guidelines, and files. */
  readonly without: readonly string[];
}

/** The note with the origin of a fork; `fork_id` is the operation that repeats the turn, or goes on before a message. */
export interface ForkNote extends Omit<ForkOrigin, "turn_id"> {
  readonly fork_id: string;
  /** Undefined if the fork goes on before the operation `operation_id`. */
  readonly turn_id?: string;
}

/** The origin of a fork, as its first event names it. */
export function placeOfFork({ session, turn_id, operation_id }: ForkNote) {
  return turn_id === undefined ? { session, before: operation_id } : { session, turn_id };
}

/**
 * The first entries of a fork: the log as it was at the turn. The operation of the turn gets a new id, so that the fork
 * resumes it as an interrupted operation. Each entry keeps its position.
 */
export function forkEntries(
  entries: readonly SessionEntry[],
  origin: ForkOrigin,
  { id, timestamp }: { readonly id: string; readonly timestamp: string },
): readonly SessionEntry[] {
  const rules = new Set(origin.without);
  const value: ForkNote = { ...origin, fork_id: id };
  const copied = entries.slice(0, origin.log_position).map((entry) => {
    const copy = entry.operation_id === origin.operation_id ? { ...entry, operation_id: id } : entry;
    return rules.size === 0 ? copy : withoutRules(copy, rules);
  });
  return [...copied, { version: 1, type: "note", name: forkNote, value, timestamp }];
}

/** The origin of a session; undefined for one that is not a fork. */
export function forkOf({ notes }: Pick<SessionState, "notes">): ForkNote | undefined {
  return notes.findLast(({ name }) => name === forkNote)?.value as ForkNote | undefined;
}

function withoutRules(entry: SessionEntry, rules: ReadonlySet<string>): SessionEntry {
  if (entry.type === "note" && entry.name === keptPlaceNote) {
    const { kept, ...rest } = entry.value as { readonly kept?: KeptInstructions };
    if (kept === undefined) return entry;
    const { files: _, ...place } = kept;
    return {
      ...entry,
      value: { ...rest, kept: { ...place, ...instructionsWithout(fromKept(kept), rules) } },
    };
  }
  if (entry.type !== "message") return entry;
  const message = messageWithout(entry.message, rules);
  return message === entry.message ? entry : { ...entry, message };
}

/** An emptied message keeps its place in the log, and is not sent. */
function messageWithout(message: Message, rules: ReadonlySet<string>): Message {
  const isOut = (item: ReceiptItem): boolean => isLeftOut(rules, item);
  if (message.role === "user") {
    const { shows = [] } = message;
    return shows.some(isOut) ? userWithout(message, isOut) : message;
  }
  // A file that the model has read shows all its sections.
  const filesOut = new Set([...rules].map((rule) => rule.slice(0, Math.max(0, rule.lastIndexOf("#")))));
  const wasShown = (item: ReceiptItem): boolean =>
    isOut(item) || (item.id === item.file && filesOut.has(item.file));
  if (message.role === "assistant" || !message.content.some(({ shows = [] }) => shows.some(wasShown)))
    return message;
  const content = message.content.map((result) => {
    const { shows, ...rest } = result;
    if (shows?.some(wasShown) !== true) return result;
    return {
      ...rest,
      content: [
        { type: "text", text: "[This result showed a rule that the session goes without.]" },
      ] as const,
    };
  });
  return { ...message, content };
}

function userWithout(message: UserMessage, isOut: (item: ReceiptItem) => boolean): UserMessage {
  const { shows = [] } = message;
  const text = message.content.map((part) => (part.type === "text" ? part.text : "")).join("");
  const blocks = text.match(/<guideline source=[\s\S]*?\n<\/guideline>/g) ?? [];
  const listed = shows.filter(({ why }) => !why.startsWith("named only"));
  const isPlain = message.source === "guidelines" && blocks.length === listed.length;
  const keptBlocks = blocks.filter((_, at) => {
    const item = listed[at];
    return item !== undefined && !isOut(item);
  });
  if (!isPlain || keptBlocks.length === 0) return { ...message, content: [], shows: [] };
  const [heading = ""] = text.split("\n", 1);
  return {
    ...message,
    content: [{ type: "text", text: `${heading}\n\n${keptBlocks.join("\n\n")}` }],
    shows: listed.filter((item) => !isOut(item)),
  };
}
