import type { KitEvent } from "./event.ts";
import type { CallItem, RetryItem, TextItem, Transcript, TranscriptItem, TurnItem } from "./transcript.ts";

/** The transcript of no events. */
export const emptyTranscript: Transcript = { items: [], index: 0, operation: undefined, state: "idle" };

/**
 * Returns the transcript with more events, oldest first. Events that it already contains are skipped, and unchanged items
 * are the same objects. The text of tasks is left out; their turns and calls are not.
 *
 * @example
 * ```ts
 * import { emptyTranscript, foldEvents, KitClient } from "kit/client";
 *
 * const client = new KitClient({ baseUrl: "http://127.0.0.1:2024" });
 * let transcript = emptyTranscript;
 * for await (const event of client.agents.events("desk", { id: "42" })) {
 *   transcript = foldEvents(transcript, [event]);
 *   console.log(transcript.state, transcript.items.at(-1)?.kind);
 * }
 * ```
 */
export function foldEvents(before: Transcript, events: readonly KitEvent[]): Transcript {
  const draft: Draft = { items: [...before.items], operation: before.operation };
  let { index } = before;
  for (const event of events) {
    // A resumed stream can repeat known events.
    if (event.index <= index) continue;
    index = event.index;
    apply(draft, event);
  }
  return { items: draft.items, index, operation: draft.operation, state: stateOf(draft) };
}

interface Draft {
  items: TranscriptItem[];
  operation: string | undefined;
}

function stateOf({ items, operation }: Draft): Transcript["state"] {
  if (operation === undefined) return "idle";
  for (let at = items.length - 1; at >= 0; at -= 1) {
    const item = items[at];
    if (item?.kind === "call" && item.state === "waiting") return "waiting";
    if (item?.kind === "retry" && item.operation_id === operation) return "retrying";
    if (item?.kind === "operation" && item.operation_id === operation) break;
  }
  return "working";
}

const textKinds = { text_delta: "text", reasoning_delta: "thinking" } as const;

type Kind = TranscriptItem["kind"];
type ItemOf<Name extends Kind> = Extract<TranscriptItem, { readonly kind: Name }>;
type Match<Name extends Kind> = (item: ItemOf<Name>) => boolean;

function isOfKind<Name extends Kind>(kind: Name, item: TranscriptItem): item is ItemOf<Name> {
  return item.kind === kind;
}

function findLast<Name extends Kind>(draft: Draft, kind: Name, match: Match<Name>): ItemOf<Name> | undefined {
  for (let at = draft.items.length - 1; at >= 0; at -= 1) {
    const item = draft.items[at];
    if (item !== undefined && isOfKind(kind, item) && match(item)) return item;
  }
  return undefined;
}

/** Replaces the newest item that matches by one with other fields. */
function change<Name extends Kind>(
  draft: Draft,
  item: ItemOf<Name> | undefined,
  fields: Partial<ItemOf<Name>>,
): void {
  if (item === undefined) return;
  draft.items[draft.items.lastIndexOf(item)] = { ...item, ...fields };
}

function apply(draft: Draft, event: KitEvent): void {
  if (growsLast(draft, event)) return;
  const { operation_id, timestamp, turn_id } = event;
  const operation = findLast(draft, "operation", (one) => one.operation_id === operation_id);
  const depth = operation?.depth ?? depthBelow(draft, event.parent_operation_id);
  const item = { id: `event-${event.index}`, operation_id, depth, started_at: timestamp };
  const findTurn = () =>
    findLast(draft, "turn", (one) => one.turn_id === turn_id && one.operation_id === operation_id);
  switch (event.type) {
    case "operation_start":
      if (depth === 0) draft.operation = operation_id;
      if (operation === undefined) {
        const { operation_kind, message, parent_operation_id } = event;
        const fields = { operation_kind, message, parent_operation_id };
        draft.items.push({ ...item, kind: "operation", ...fields, state: "running", attempts: 1 });
        return;
      }
      // An attempt can follow the end of another one in older logs.
      draft.items = draft.items.filter(
        (one) => one.operation_id !== operation_id || (one.kind !== "end" && !isOpenText(one)),
      );
      change(draft, operation, { state: "running", ended_at: undefined });
      beginRetry(draft, operation_id);
      return;
    case "turn_request": {
      const { model, purpose, attempt, receipt, index } = event;
      if (attempt > 1) {
        // The text of an earlier attempt at the same turn is void.
        draft.items = draft.items.filter((one) => !(isOpenText(one) && one.turn_id === turn_id));
        endTurn(draft, findTurn(), { ended_at: timestamp, state: "failed" });
      }
      const receipt_items = receipt?.items;
      const fields = { turn_id, model, purpose, attempt, event_index: index, receipt_items };
      const known = findTurn();
      if (known?.ended_at === undefined && known !== undefined) change(draft, known, fields);
      else draft.items.push({ ...item, kind: "turn", ...fields, state: "running" });
      beginRetry(draft, operation_id);
      return;
    }
    case "text_delta":
    case "reasoning_delta":
      endRetry(draft, operation_id);
      // The text of a task goes to its parent only.
      if (depth > 0) return;
      draft.items.push({ ...item, kind: textKinds[event.type], turn_id, text: event.text, is_open: true });
      return;
    case "turn":
      endRetry(draft, operation_id);
      closeText(draft, turn_id);
      change(draft, findTurn(), { usage: event.usage, first_chunk_ms: event.first_chunk_ms });
      return;
    case "turn_end": {
      closeText(draft, turn_id);
      const state = event.is_aborted === true ? "stopped" : event.is_error === true ? "failed" : "done";
      endTurn(draft, findTurn(), { ended_at: timestamp, state });
      return;
    }
    case "tool_start": {
      closeText(draft, turn_id);
      const { tool_call_id, tool, args } = event;
      const call: CallItem = { ...item, kind: "call", tool_call_id, tool, args, state: "running" };
      const known = findCall(draft, event);
      if (known === undefined) draft.items.push(call);
      else draft.items[draft.items.lastIndexOf(known)] = { ...call, id: known.id };
      return;
    }
    case "tool_progress":
      change(draft, findCall(draft, event), { progress: event.progress });
      return;
    case "tool_end": {
      const { result, is_error } = event;
      const call = findCall(draft, event);
      const { waited_ms = 0 } = call ?? {};
      // The event counts the time that the call waited, unless the server has restarted since.
      const duration_ms = event.duration_ms - (event.duration_ms < waited_ms ? 0 : waited_ms);
      const state = is_error ? "failed" : "done";
      const ended = { approval_id: undefined, waits_since: undefined, ended_at: timestamp };
      change(draft, call, { result, duration_ms, state, ...ended });
      return;
    }
    case "approval_request": {
      const { approval_id, message: question } = event;
      change(draft, findCall(draft, event), {
        state: "waiting",
        approval_id,
        waits_since: timestamp,
        ...(question !== undefined && { question }),
      });
      return;
    }
    case "approval": {
      const { approved, by, reason, args } = event;
      const call = findCall(draft, event);
      const waited =
        call?.waits_since === undefined ? 0 : Date.parse(timestamp) - Date.parse(call.waits_since);
      change(draft, call, {
        state: "running",
        approval_id: undefined,
        waits_since: undefined,
        waited_ms: (call?.waited_ms ?? 0) + waited,
        ...(call?.question === undefined
          ? {
              decision: {
                approved,
                ...(by !== undefined && { by }),
                ...(reason !== undefined && { reason }),
              },
            }
          : // An answer is no decision about the call.
            { question: undefined }),
        ...(args !== undefined && { args }),
      });
      return;
    }
    case "task_start": {
      const { task_id, task_agent, role, prompt } = event;
      const label = task_agent ?? role ?? "task";
      draft.items.push({ ...item, kind: "task", task_id, label, prompt, state: "running" });
      return;
    }
    case "task_end": {
      const task = findLast(draft, "task", (one) => one.task_id === event.task_id);
      change(draft, task, { state: event.is_error ? "failed" : "done", ended_at: timestamp });
      return;
    }
    case "compaction_start": {
      const { reason, tokens_before } = event;
      draft.items.push({ ...item, kind: "compaction", reason, tokens_before, state: "running" });
      return;
    }
    case "compaction_end": {
      const { reason, tokens_before, tokens_after, is_error } = event;
      const ended = { tokens_after, state: is_error ? "failed" : "done", ended_at: timestamp } as const;
      const known = findLast(
        draft,
        "compaction",
        (one) => one.operation_id === operation_id && one.ended_at === undefined,
      );
      if (known !== undefined) change(draft, known, ended);
      else draft.items.push({ ...item, kind: "compaction", reason, tokens_before, ...ended });
      return;
    }
    case "joined": {
      const { message, joined_from } = event;
      draft.items.push({ ...item, kind: "joined", message, joined_from });
      return;
    }
    case "gap":
      draft.items.push({ ...item, kind: "gap" });
      return;
    case "error": {
      const { error, will_retry, retry_in_ms = 0, next_model } = event;
      change(draft, findTurn(), { error });
      const attempts = (operation?.attempts ?? 1) + (will_retry ? 1 : 0);
      change(draft, operation, { error, attempts });
      endRetry(draft, operation_id);
      if (will_retry)
        draft.items.push({
          ...item,
          kind: "retry",
          error,
          attempt: attempts,
          retry_in_ms,
          next_model,
          has_begun: false,
        });
      return;
    }
    case "operation": {
      const { is_error, is_aborted, duration_ms, usage } = event;
      const state = is_aborted === true ? "stopped" : is_error ? "failed" : "done";
      if (draft.operation === operation_id) draft.operation = undefined;
      endRetry(draft, operation_id);
      draft.items = draft.items.map((one) => (one.operation_id === operation_id ? ended(one, event) : one));
      const { attempts = 1 } = operation ?? {};
      const error = state === "failed" ? operation?.error : undefined;
      draft.items.push({ ...item, kind: "end", state, duration_ms, attempts, usage, error });
      return;
    }
    // Other items show their work, or a transcript leaves it out.
    case "agent_start":
    case "idle":
    case "abort_requested":
    case "aborted":
    case "tool_args_delta":
    case "source":
    case "file":
    case "command_start":
    case "command_end":
    case "run_start":
    case "run_end":
    case "step_start":
    case "step_end":
    case "log":
      return;
    default:
      // A newer server can send types that this reader does not know.
      event satisfies never;
  }
}

function depthBelow(draft: Draft, parent: string | undefined): number {
  if (parent === undefined) return 0;
  return (findLast(draft, "operation", (one) => one.operation_id === parent)?.depth ?? 0) + 1;
}

function findCall(
  draft: Draft,
  { operation_id, tool_call_id }: { readonly operation_id: string; readonly tool_call_id: string },
): CallItem | undefined {
  return findLast(
    draft,
    "call",
    (one) => one.tool_call_id === tool_call_id && one.operation_id === operation_id,
  );
}

function isOpenText(item: TranscriptItem): item is TextItem {
  return (item.kind === "text" || item.kind === "thinking") && item.is_open;
}

function endTurn(draft: Draft, turn: TurnItem | undefined, end: Pick<TurnItem, "ended_at" | "state">): void {
  if (turn !== undefined && turn.ended_at === undefined) change(draft, turn, end);
}

/** Adds a delta to the text at the end, which most events do. */
function growsLast(draft: Draft, event: KitEvent): boolean {
  if (event.type !== "text_delta" && event.type !== "reasoning_delta") return false;
  const last = draft.items.at(-1);
  const isSame =
    last?.kind === textKinds[event.type] &&
    last.is_open &&
    last.turn_id === event.turn_id &&
    last.operation_id === event.operation_id;
  if (isSame) draft.items[draft.items.length - 1] = { ...last, text: last.text + event.text };
  return isSame;
}

function closeText(draft: Draft, turn_id: string | undefined): void {
  for (let at = draft.items.length - 1; at >= 0; at -= 1) {
    const item = draft.items[at];
    if (item === undefined || item.kind === "operation" || item.kind === "end") return;
    if (isOpenText(item) && item.turn_id === turn_id) draft.items[at] = { ...item, is_open: false };
  }
}

/** The next attempt has begun: its retry is shown until the model answers. */
function beginRetry(draft: Draft, operation_id: string): void {
  const retry = findRetry(draft, operation_id);
  if (retry?.has_begun === false) change(draft, retry, { has_begun: true });
}

function findRetry(draft: Draft, operation_id: string): RetryItem | undefined {
  const { items } = draft;
  for (let at = items.length - 1; at >= 0; at -= 1) {
    const item = items[at];
    if (item?.operation_id !== operation_id) continue;
    if (item.kind === "retry") return item;
    if (item.kind === "operation") return undefined;
  }
  return undefined;
}

function endRetry(draft: Draft, operation_id: string): void {
  const retry = findRetry(draft, operation_id);
  if (retry !== undefined) draft.items.splice(draft.items.lastIndexOf(retry), 1);
}

/** Ends what an operation left open. */
function ended(
  item: TranscriptItem,
  event: Extract<KitEvent, { readonly type: "operation" }>,
): TranscriptItem {
  const { timestamp, usage, is_error, is_aborted } = event;
  if (isOpenText(item)) return { ...item, is_open: false };
  if (item.kind === "operation") {
    const state = is_aborted === true ? "stopped" : is_error ? "failed" : "done";
    return { ...item, state, usage, ended_at: timestamp };
  }
  if (!("state" in item) || (item.state !== "running" && item.state !== "waiting")) return item;
  const left = { ...item, state: "stopped", ended_at: timestamp } as const;
  return left.kind === "call" ? { ...left, approval_id: undefined, waits_since: undefined } : left;
}
