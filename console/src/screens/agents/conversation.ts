import type { HistoryMessage, KitEvent } from "../../../../src/client/index.ts";

interface Base {
  /** The entry's identity, which does not change while the entry grows. */
  readonly id: string;
  readonly operation_id: string;
}

export interface Picture {
  readonly media_type: string;
  readonly data: string;
}

export interface ToolEntry extends Base {
  readonly kind: "tool";
  readonly call_id: string;
  readonly tool: string;
  readonly args: unknown;
  readonly state: "running" | "waiting" | "done" | "failed" | "unknown";
  readonly result?: string;
  readonly pictures?: readonly Picture[];
  readonly progress?: unknown;
  readonly duration_ms?: number;
  readonly approval_id?: string | undefined;
  readonly decision?: string;
}

/** A line of a conversation. */
export type Entry =
  | (Base & {
      readonly kind: "user";
      readonly text: string;
      readonly pictures: readonly Picture[];
      readonly at: string;
    })
  | (Base & { readonly kind: "kit"; readonly source: string; readonly text: string })
  | (Base & {
      readonly kind: "text" | "thinking";
      readonly turn_id: string;
      readonly text: string;
      readonly isOpen: boolean;
    })
  | ToolEntry
  | (Base & {
      readonly kind: "task";
      readonly task_id: string;
      readonly label: string;
      readonly prompt: string;
      readonly state: "running" | "done" | "failed";
    })
  | (Base & { readonly kind: "notice"; readonly tone: "bad" | "warn" | "none"; readonly text: string })
  | (Base & {
      readonly kind: "end";
      readonly label: string;
      readonly tokens: number | undefined;
      readonly cost: number | null;
      readonly duration_ms: number;
    });

export interface Conversation {
  readonly entries: readonly Entry[];
  /** The index of the last event in it. */
  readonly index: number;
  /** The running operation. */
  readonly working: string | undefined;
}

export const emptyConversation: Conversation = { entries: [], index: 0, working: undefined };

function picturesOf(content: readonly { readonly type: string }[]): readonly Picture[] {
  return content.flatMap((part) =>
    part.type === "image" && "data" in part && typeof part.data === "string" && "media_type" in part
      ? [{ data: part.data, media_type: String(part.media_type) }]
      : [],
  );
}

function textOf(content: readonly { readonly type: string }[]): string {
  return content.map((part) => (part.type === "text" && "text" in part ? String(part.text) : "")).join("");
}

interface ToolResult {
  readonly type: string;
  readonly tool_call_id?: unknown;
  readonly content?: unknown;
  readonly is_error?: unknown;
  readonly outcome?: unknown;
}

/** The entries of messages, oldest first. */
export function entriesOf(messages: readonly HistoryMessage[]): readonly Entry[] {
  const entries: Entry[] = [];
  const positions = new Map<string, number>();
  for (const message of messages) {
    const base = { operation_id: message.operation_id ?? "" };
    const name = `message-${message.position ?? message.timestamp}`;
    if (message.role === "user") {
      const text = textOf(message.content);
      if (message.source !== undefined)
        entries.push({ ...base, id: name, kind: "kit", source: message.source, text });
      else
        entries.push({
          ...base,
          id: name,
          kind: "user",
          text,
          pictures: picturesOf(message.content),
          at: message.timestamp,
        });
      continue;
    }
    for (const [at, part] of message.content.entries()) {
      const id = `${name}-${at}`;
      if (part.type === "text" || part.type === "reasoning") {
        const kind = part.type === "text" ? "text" : "thinking";
        const text = String(part.text ?? "");
        if (text !== "") entries.push({ ...base, id, kind, turn_id: id, text, isOpen: false });
      } else if (part.type === "tool_call") {
        const call_id = String(part.tool_call_id);
        positions.set(call_id, entries.length);
        entries.push({
          ...base,
          id,
          kind: "tool",
          call_id,
          tool: String(part.tool),
          args: part.args,
          state: "unknown",
        });
      } else if (part.type === "tool_result") {
        const result: ToolResult = part;
        const place = positions.get(String(result.tool_call_id));
        const call = place === undefined ? undefined : entries[place];
        if (place === undefined || call?.kind !== "tool") continue;
        const content = Array.isArray(result.content) ? result.content : [];
        const state = result.is_error === true ? "failed" : result.outcome === "unknown" ? "unknown" : "done";
        entries[place] = { ...call, state, result: textOf(content), pictures: picturesOf(content) };
      }
    }
  }
  return entries;
}

/** Returns the conversation with more events: a new object, in which unchanged entries are the same objects. */
export function withEvents(before: Conversation, events: readonly KitEvent[]): Conversation {
  const draft: Draft = { entries: [...before.entries], working: before.working };
  let { index } = before;
  for (const event of events) {
    // A resumed stream can repeat known events.
    if (event.index <= index) continue;
    index = event.index;
    apply(draft, event);
  }
  return { entries: draft.entries, index, working: draft.working };
}

/** Adds the images of a message from the history: events only have its text. */
export function withPictures(
  before: Conversation,
  operation_id: string,
  messages: readonly HistoryMessage[],
): Conversation {
  const sent = messages.find((message) => message.role === "user" && message.operation_id === operation_id);
  if (sent === undefined) return before;
  const entries = before.entries.map((entry) =>
    entry.kind === "user" && entry.operation_id === operation_id
      ? { ...entry, pictures: picturesOf(sent.content) }
      : entry,
  );
  return { ...before, entries };
}

interface Draft {
  entries: Entry[];
  working: string | undefined;
}

function apply(draft: Draft, event: KitEvent): void {
  const { operation_id } = event;
  const base = { id: `event-${event.index}`, operation_id };
  // The trace of a task shows its events.
  if (event.task_id !== undefined && event.type !== "task_start" && event.type !== "task_end") return;
  switch (event.type) {
    case "operation_start": {
      draft.working = operation_id;
      const isKnown = draft.entries.some((entry) => entry.operation_id === operation_id);
      if (event.resumed === true) dropOpen(draft, operation_id);
      if (isKnown || event.message === undefined) return;
      draft.entries.push({ ...base, kind: "user", text: event.message, pictures: [], at: event.timestamp });
      return;
    }
    case "turn_request":
      // The deltas of an earlier attempt at the same turn are void.
      if (event.attempt > 1) draft.entries = draft.entries.filter((entry) => !isOfTurn(entry, event.turn_id));
      return;
    case "text_delta":
      grow(draft, "text", event);
      return;
    case "reasoning_delta":
      grow(draft, "thinking", event);
      return;
    case "turn_end":
    case "turn":
      close(draft, event.turn_id);
      return;
    case "tool_start": {
      close(draft, event.turn_id);
      const known = draft.entries.findLastIndex(
        (one) => one.kind === "tool" && one.call_id === event.tool_call_id,
      );
      const entry: ToolEntry = {
        ...base,
        kind: "tool",
        call_id: event.tool_call_id,
        tool: event.tool,
        args: event.args,
        state: "running",
      };
      const place = draft.entries[known];
      if (place === undefined || place.operation_id !== operation_id) draft.entries.push(entry);
      else draft.entries[known] = { ...entry, id: place.id };
      return;
    }
    case "tool_progress":
      changeTool(draft, event.tool_call_id, { progress: event.progress });
      return;
    case "tool_end": {
      const { result, duration_ms } = event;
      const state = event.is_error ? "failed" : "done";
      changeTool(draft, event.tool_call_id, { result, duration_ms, state, approval_id: undefined });
      return;
    }
    case "approval_request":
      changeTool(draft, event.tool_call_id, { state: "waiting", approval_id: event.approval_id });
      return;
    case "approval": {
      const by = event.by === undefined ? "" : ` by ${event.by}`;
      const decision = `${event.approved ? "Approved" : "Denied"}${by}${event.reason === undefined ? "" : `: ${event.reason}`}`;
      changeTool(draft, event.tool_call_id, { state: "running", approval_id: undefined, decision });
      return;
    }
    case "task_start": {
      const label = event.task_agent ?? event.role ?? "task";
      draft.entries.push({
        ...base,
        kind: "task",
        task_id: event.task_id,
        label,
        prompt: event.prompt,
        state: "running",
      });
      return;
    }
    case "task_end": {
      const at = draft.entries.findLastIndex(
        (entry) => entry.kind === "task" && entry.task_id === event.task_id,
      );
      const task = draft.entries[at];
      if (task?.kind === "task") draft.entries[at] = { ...task, state: event.is_error ? "failed" : "done" };
      return;
    }
    case "compaction_end":
      if (!event.is_error) {
        const text = `History shortened: ${event.tokens_before.toLocaleString()} tokens became ${event.tokens_after.toLocaleString()}`;
        draft.entries.push({ ...base, kind: "notice", tone: "none", text });
      }
      return;
    case "gap":
      draft.entries.push({ ...base, kind: "notice", tone: "warn", text: "Older events were removed." });
      return;
    case "error": {
      const again = event.next_model === undefined ? "trying again" : `asking ${event.next_model}`;
      const text = `${event.error.message}${event.will_retry ? ` (${again})` : ""}`;
      draft.entries.push({ ...base, kind: "notice", tone: event.will_retry ? "warn" : "bad", text });
      return;
    }
    case "operation": {
      if (draft.working === operation_id) draft.working = undefined;
      draft.entries = draft.entries.map((entry) =>
        entry.operation_id === operation_id ? ended(entry) : entry,
      );
      const label = event.is_aborted === true ? "Stopped" : event.is_error ? "Failed" : "Done";
      const { duration_ms, usage } = event;
      draft.entries.push({
        ...base,
        kind: "end",
        label,
        duration_ms,
        tokens: usage?.total_tokens,
        cost: usage?.cost.total ?? null,
      });
      return;
    }
    // The conversation shows their work in other entries, or not at all.
    case "agent_start":
    case "idle":
    case "abort_requested":
    case "aborted":
    case "command_start":
    case "command_end":
    case "compaction_start":
    case "run_start":
    case "run_end":
    case "step_start":
    case "step_end":
    case "log":
      return;
    default:
      // A newer server can send types that this page does not know.
      event satisfies never;
  }
}

function isOfTurn(entry: Entry, turn_id: string | undefined): boolean {
  return (entry.kind === "text" || entry.kind === "thinking") && entry.turn_id === turn_id && entry.isOpen;
}

/** After a crash, turns that had not ended are repeated. */
function dropOpen(draft: Draft, operation_id: string): void {
  draft.entries = draft.entries.filter(
    (entry) =>
      entry.operation_id !== operation_id ||
      !((entry.kind === "text" || entry.kind === "thinking") && entry.isOpen),
  );
}

function ended(entry: Entry): Entry {
  if ((entry.kind === "text" || entry.kind === "thinking") && entry.isOpen)
    return { ...entry, isOpen: false };
  if (entry.kind === "tool" && (entry.state === "running" || entry.state === "waiting")) {
    return { ...entry, state: "unknown", approval_id: undefined };
  }
  return entry;
}

type Delta = Extract<KitEvent, { readonly type: "text_delta" | "reasoning_delta" }>;

function grow(
  draft: Draft,
  kind: "text" | "thinking",
  { text, turn_id = "", operation_id, index }: Delta,
): void {
  const last = draft.entries.at(-1);
  if (last?.kind === kind && last.turn_id === turn_id && last.isOpen) {
    draft.entries[draft.entries.length - 1] = { ...last, text: last.text + text };
  } else {
    draft.entries.push({ id: `event-${index}`, operation_id, kind, turn_id, text, isOpen: true });
  }
}

function close(draft: Draft, turn_id: string | undefined): void {
  for (let at = draft.entries.length - 1; at >= 0; at -= 1) {
    const entry = draft.entries[at];
    if (entry === undefined || entry.kind === "user" || entry.kind === "end") return;
    if (isOfTurn(entry, turn_id)) draft.entries[at] = ended(entry);
  }
}

function changeTool(draft: Draft, call_id: string, change: Partial<ToolEntry>): void {
  const at = draft.entries.findLastIndex((entry) => entry.kind === "tool" && entry.call_id === call_id);
  const entry = draft.entries[at];
  if (entry?.kind === "tool") draft.entries[at] = { ...entry, ...change };
}
