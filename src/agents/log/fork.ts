import type { Message, UserMessage } from "../../protocol/message.ts";
import type { ReceiptItem } from "../../protocol/receipt.ts";
import type { SessionEntry } from "../../protocol/session-entry.ts";
import type { ProjectInstructions } from "../project-context.ts";
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

/** The note with a `ForkOrigin`; `fork_id` is the operation that repeats the turn. */
interface ForkNote extends ForkOrigin {
  readonly fork_id: string;
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

const noRules: ReadonlySet<string> = new Set();

/** The rules that a session leaves out. */
export function rulesLeftOut(state: Pick<SessionState, "notes">): ReadonlySet<string> {
  const without = state.notes.length === 0 ? undefined : forkOf(state)?.without;
  return without === undefined || without.length === 0 ? noRules : new Set(without);
}

/** Whether a rule is among those that are left out, by its id or by its file. */
export function isLeftOut(
  rules: ReadonlySet<string>,
  { id, file }: { readonly id: string; readonly file?: string | undefined },
): boolean {
  return rules.has(id) || (file !== undefined && rules.has(file));
}

/** Project instructions without the files that are left out. Their guidelines are not listed instead. */
export function instructionsWithout<Place extends Pick<ProjectInstructions, "text" | "files">>(
  instructions: Place,
  rules: ReadonlySet<string>,
): Place {
  if (rules.size === 0 || !instructions.files.some(({ path }) => rules.has(path))) return instructions;
  const { text, files } = instructions;
  // Each block begins with its own mark, and they follow each other in the order of the files.
  const starts: number[] = [];
  for (const { path } of files)
    starts.push(text.indexOf(`<instructions source="${path}">\n`, starts.at(-1) ?? 0));
  if (starts.includes(-1)) return { ...instructions, text: "", files: [] };
  const blocks = starts.map((start, at) => text.slice(start, starts[at + 1]).trimEnd());
  const keptBlocks = files.flatMap(({ path }, at) => (rules.has(path) ? [] : [blocks[at] ?? ""]));
  return {
    ...instructions,
    text: keptBlocks.join("\n\n"),
    files: files.filter(({ path }) => !rules.has(path)),
  };
}

function withoutRules(entry: SessionEntry, rules: ReadonlySet<string>): SessionEntry {
  if (entry.type === "note" && entry.name === keptPlaceNote) {
    const { kept, ...rest } = entry.value as {
      readonly kept?: Pick<ProjectInstructions, "text" | "files">;
    };
    return kept === undefined
      ? entry
      : { ...entry, value: { ...rest, kept: instructionsWithout(kept, rules) } };
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
  if (message.role === "assistant" || !message.content.some(({ shows = [] }) => shows.some(isOut)))
    return message;
  const content = message.content.map((result) => {
    const { shows, ...rest } = result;
    if (shows?.some(isOut) !== true) return result;
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
