import { addUsage, noUsage } from "../../protocol/add-usage.ts";
import type { AssistantMessage, Message } from "../../protocol/message.ts";
import type { Usage } from "../../protocol/usage.ts";
import type { SessionStore } from "../../stores/contract.ts";
import { begunAt, catchUp, type SessionState } from "./session-state.ts";

/** What the log says of an operation that was begun before, perhaps by a process that died. */
export interface PastOperation {
  /** Position of its first message in the log; that of the next entry where it has none. */
  readonly first: number;
  /** All its messages, those that a compaction took out of the context too. */
  readonly messages: readonly Message[];
  /** Where the log has each of them. */
  readonly positions: readonly number[];
  /** What was noted for it alone, oldest first. */
  readonly notes: readonly { readonly name: string; readonly value: unknown; readonly position: number }[];
  /** Of its model calls, and of the tasks and compactions that the log tells of. */
  readonly usage: Usage;
  /** Model calls of its own. */
  readonly turns: number;
  /** Whether it has shortened the history. */
  readonly compacted: boolean;
  /** Whether the session has gone on with other work since. */
  readonly overtaken: boolean;
}

/** The note of what was spent beside the messages of an operation: by its tasks and its compactions. */
export const spentNote = "spent";

/** The note of an answer that is no part of the conversation: an assistant's message. */
export const asideNote = "aside";

export interface AsideNote {
  readonly message: AssistantMessage;
  readonly request: string;
}

/**
 * Reads what the log has of an operation: its own entries, however long the log is. Undefined when
 * there is nothing.
 */
export async function loadPastOperation(
  store: SessionStore,
  state: SessionState,
  id: string,
): Promise<PastOperation | undefined> {
  // Another process may have begun it, or gone on with it, since this one has read the log.
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

/** Results of calls that the operation before it left open, and what has changed in the place of its work. */
function isBeforeInput(message: Message): boolean {
  return message.role === "tool" || (message.role === "user" && message.source === "instructions");
}
