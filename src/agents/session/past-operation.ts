import type { Message } from "../../protocol/message.ts";
import { addUsage, noUsage, type Usage } from "../../protocol/usage.ts";
import type { SessionStore } from "../../stores/contract.ts";
import { begunAt, catchUp, type SessionState } from "./session-state.ts";

/** What the log says of an operation that was begun before, perhaps by a process that died. */
export interface PastOperation {
  /** Position of its first message in the log; that of the next entry where it has none. */
  readonly first: number;
  /** All its messages, those that a compaction took out of the context too. */
  readonly messages: readonly Message[];
  /** What was noted for it alone, oldest first. */
  readonly notes: readonly { readonly name: string; readonly value: unknown }[];
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
  const notes: { name: string; value: unknown }[] = [];
  let first = 0;
  let position = begun - 1;
  let usage = noUsage;
  let compacted = false;
  for (const entry of await store.read(state.key, position)) {
    position += 1;
    if (entry.operation_id !== id) continue;
    if (entry.type === "note") {
      notes.push({ name: entry.name, value: entry.value });
      if (entry.name === spentNote) usage = addUsage(usage, entry.value as Usage);
    }
    if (entry.type === "compaction") compacted = true;
    if (entry.type !== "message" || (messages.length === 0 && isBeforeInput(entry.message))) continue;
    if (messages.length === 0) first = position;
    messages.push(entry.message);
    if (entry.message.role === "assistant") usage = addUsage(usage, entry.message.usage);
  }
  if (messages.length === 0 && notes.length === 0 && !compacted) return undefined;
  const turns = messages.filter((message) => message.role === "assistant").length;
  const overtaken = state.lastOperation !== id;
  return { first: first === 0 ? position + 1 : first, messages, notes, usage, turns, compacted, overtaken };
}

/** Results of calls that the operation before it left open, and what has changed in the place of its work. */
function isBeforeInput(message: Message): boolean {
  return message.role === "tool" || (message.role === "user" && message.source === "instructions");
}
