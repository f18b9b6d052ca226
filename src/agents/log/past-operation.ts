import type { AssistantMessage, Message, Usage } from "../../protocol/message.ts";
import { addUsage, noUsage } from "../../protocol/read-records.ts";
import type { SessionEntry } from "../../protocol/session-entry.ts";
import type { SessionStore } from "../../stores/contract.ts";
import { begunAt, catchUp, type SessionState } from "./session-state.ts";

/** The logged work of an operation that was started before, perhaps by a process that died. */
export interface PastOperation {
  /** Log position of its first message, or, if it has none, of the next entry that will be written. */
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
 * The turns of an operation that are done: answers whose calls all have a result. A call that was interrupted has none, so an
 * operation that always dies in the same call does not come further.
 */
export function countDoneTurns(entries: readonly SessionEntry[], id: string): number {
  let done = 0;
  let open = new Set<string>();
  for (const entry of entries) {
    if (entry.type !== "message" || entry.operation_id !== id) continue;
    const { message } = entry;
    if (message.role === "assistant")
      open = new Set(
        message.content.flatMap((part) => (part.type === "tool_call" ? [part.tool_call_id] : [])),
      );
    else if (message.role === "tool") {
      for (const result of message.content)
        if (result.outcome === undefined) open.delete(result.tool_call_id);
    } else continue;
    if (open.size === 0) done += 1;
  }
  return done;
}

/**
 * Reads an operation's entries from the log. Undefined if there are none. `isFresh` if the state was read from the log just now:
 * otherwise another process may have started or continued the operation since.
 */
export async function loadPastOperation(
  store: SessionStore,
  state: SessionState,
  { id, isFresh }: { readonly id: string; readonly isFresh: boolean },
): Promise<PastOperation | undefined> {
  if (!isFresh) await catchUp(store, state);
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
