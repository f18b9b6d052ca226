import { KitError } from "../../base/kit-error.ts";
import type { EventBody } from "../../protocol/event.ts";
import type { AssistantMessage, Message, Usage, UserMessage } from "../../protocol/message.ts";
import { addUsage, noUsage } from "../../protocol/read-records.ts";
import type { ReceiptItem } from "../../protocol/receipt.ts";
import type { SessionEntry } from "../../protocol/session-entry.ts";
import type { SessionStore } from "../../stores/contract.ts";
import type { ProjectInstructions } from "../project-context.ts";
import { begunAt, catchUp, forkNote, keptPlaceNote, type SessionState } from "./session-state.ts";

/** The logged work of an operation that was started before, perhaps by a process that died. */
export interface PastOperation {
  /** Log position of its first message; without one, that of the next entry. */
  readonly first: number;
  /** All its messages, including those that a compaction removed from the context. */
  readonly messages: readonly Message[];
  /** The log position of each message. */
  readonly positions: readonly number[];
  /** The operation's own notes, oldest first. */
  readonly notes: readonly { readonly name: string; readonly value: unknown; readonly position: number }[];
  /** The usage of its model calls and of its logged tasks and compactions. */
  readonly usage: Usage;
  /** Model calls of its own. */
  readonly turns: number;
  /** Whether it has compacted the history. */
  readonly compacted: boolean;
  /** Whether other operations came after it. */
  readonly overtaken: boolean;
}

/** The note with the usage of an operation's tasks and compactions. */
export const spentNote = "spent";

/** The note with an answer outside the conversation: an assistant's message. */
export const asideNote = "aside";

export interface AsideNote {
  readonly message: AssistantMessage;
  readonly request: string;
}

/**
 * Reads an operation's entries from the log. Undefined if there are none.
 */
export async function loadPastOperation(
  store: SessionStore,
  state: SessionState,
  id: string,
): Promise<PastOperation | undefined> {
  // Another process may have started or continued it since this process read the log.
  await catchUp(store, state);
  const begun = begunAt(state, id);
  if (begun === undefined) return undefined;
  const messages: Message[] = [];
  const positions: number[] = [];
  const notes: { name: string; value: unknown; position: number }[] = [];
  let first = 0;
  let position = begun - 1;
  let usage = noUsage;
  let compacted = false;
  let turns = 0;
  const count = (message: AssistantMessage): void => {
    if (message.source !== undefined) return;
    usage = addUsage(usage, message.usage);
    turns += 1;
  };
  for (const entry of await store.read(state.key, position)) {
    position += 1;
    if (entry.operation_id !== id) continue;
    if (entry.type === "note") {
      notes.push({ name: entry.name, value: entry.value, position });
      if (entry.name === spentNote) usage = addUsage(usage, entry.value as Usage);
      if (entry.name === asideNote) count((entry.value as AsideNote).message);
    }
    if (entry.type === "compaction") compacted = true;
    if (entry.type !== "message" || (messages.length === 0 && isBeforeInput(entry.message))) continue;
    if (messages.length === 0) first = position;
    messages.push(entry.message);
    positions.push(position);
    if (entry.message.role === "assistant") count(entry.message);
  }
  if (messages.length === 0 && notes.length === 0 && !compacted) return undefined;
  const overtaken = state.lastOperation !== id;
  const start = first === 0 ? position + 1 : first;
  return { first: start, messages, positions, notes, usage, turns, compacted, overtaken };
}

/** Messages before the input: results of calls that the previous operation left open, and changed instructions. */
function isBeforeInput(message: Message): boolean {
  return message.role === "tool" || (message.role === "user" && message.source === "instructions");
}

/**
 * The abort reason that suspends an operation which only waits for approval: it leaves memory without an event. After
 * the decision, the service starts the same operation with a signal that `resumeFrom` marks: it resumes from the log, as
 * after a crash, and repeats no event.
 */
export class Suspension extends KitError {
  /** When the operation started, by its runtime's clock. */
  startedAt: number | undefined;
  /** The turn whose calls wait. */
  turnId: string | undefined;
  /** When each call started, in milliseconds of this process. */
  readonly #calls: { readonly id: string; readonly startedAt: number }[] = [];
  readonly #starts: string[] = [];
  readonly #requests: string[] = [];

  constructor() {
    super({
      code: "aborted",
      message: "The operation is suspended until its approval is decided.",
      meta: { will_resume: true },
    });
  }

  /** Records a waiting call. */
  add(id: string, startedAt: number): void {
    this.#calls.push({ id, startedAt });
    this.#starts.push(id);
    this.#requests.push(id);
  }

  /** When a resumed call started. */
  startOf(id: string): number | undefined {
    return this.#calls.find((call) => call.id === id)?.startedAt;
  }

  /** Whether readers got this event before the suspension. */
  hasEmitted(body: EventBody): boolean {
    switch (body.type) {
      case "operation_start":
      case "agent_start":
        return true;
      case "tool_start":
        return take(this.#starts, body.tool_call_id);
      case "approval_request":
        return take(this.#requests, body.tool_call_id);
      default:
        return false;
    }
  }
}

/** Call ids come from providers and may repeat, so each entry counts once. */
function take(ids: string[], id: string): boolean {
  const at = ids.indexOf(id);
  if (at !== -1) ids.splice(at, 1);
  return at !== -1;
}

const marked = new WeakMap<AbortSignal, Suspension>();

/** Marks the signal of an operation that resumes after a suspension. */
export function resumeFrom(suspension: Suspension, signal: AbortSignal): void {
  marked.set(signal, suspension);
}

/** The suspension that the operation with that signal resumes from. */
export function suspensionBefore(signal: AbortSignal | undefined): Suspension | undefined {
  return signal === undefined ? undefined : marked.get(signal);
}

/** Whether the signal suspends its operation. */
export function isSuspension(signal: AbortSignal): signal is AbortSignal & { readonly reason: Suspension } {
  return signal.aborted && signal.reason instanceof Suspension;
}

/** Thrown by a call that continues when its operation resumes: it has no result yet. `cause` is the reason. */
export class Postponed extends Error {
  override readonly name = "Postponed";
}

/**
 * Whether an aborted operation will be resumed, by another process or at the next start: resumable work is then left
 * as a crash would leave it.
 */
export function willResume({ aborted, reason }: AbortSignal): boolean {
  if (!aborted || !(reason instanceof KitError)) return false;
  return reason.code === "lease_lost" || reason.meta?.will_resume === true;
}

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
    const own = entry.operation_id === origin.operation_id ? { ...entry, operation_id: id } : entry;
    return rules.size === 0 ? own : withoutRules(own, rules);
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
  const kept = files.flatMap(({ path }, at) => (rules.has(path) ? [] : [blocks[at] ?? ""]));
  return { ...instructions, text: kept.join("\n\n"), files: files.filter(({ path }) => !rules.has(path)) };
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
  const kept = blocks.filter((_, at) => {
    const item = listed[at];
    return item !== undefined && !isOut(item);
  });
  if (!isPlain || kept.length === 0) return { ...message, content: [], shows: [] };
  const [heading = ""] = text.split("\n", 1);
  return {
    ...message,
    content: [{ type: "text", text: `${heading}\n\n${kept.join("\n\n")}` }],
    shows: listed.filter((item) => !isOut(item)),
  };
}
