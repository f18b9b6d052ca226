import type {
  CallItem,
  CompactionItem,
  EventError,
  OperationItem,
  ReceiptItem,
  Transcript,
  TranscriptItem,
  TurnItem,
  Usage,
  WorkState,
} from "../../../../src/client/index.ts";

/** A part of an operation that takes time: a turn, a tool call, a task, a compaction. */
export interface Span {
  readonly id: string;
  readonly kind: "operation" | "turn" | "call" | "compaction";
  readonly title: string;
  readonly depth: number;
  readonly state: WorkState;
  /** ms since the epoch. */
  readonly start: number;
  readonly end: number | undefined;
  /** How long it worked: for a call, without the time that it waited for a person. */
  readonly duration_ms: number | undefined;
  /** The time for which it waited for a person, in ms since the epoch; without an end if it waits now. */
  readonly wait: { readonly start: number; readonly end: number | undefined } | undefined;
  readonly error?: EventError | undefined;
  readonly usage?: Usage | undefined;
  readonly first_chunk_ms?: number | undefined;
  /** For a turn: its id, and the index of its last request. */
  readonly turn?: { readonly id: string; readonly eventIndex: number } | undefined;
  /** For a turn: how many rules, specs and other items were in the model's context. */
  readonly items?: number | undefined;
  /** The arguments of a call. */
  readonly input?: unknown;
  /** The result of a call. */
  readonly output?: string | undefined;
}

/** The spans of an operation and of its tasks, in the order of their starts. */
export function readSpans({ items }: Transcript, operation_id: string): readonly Span[] {
  const family = new Set<string>();
  return items.flatMap((item) => {
    const { parent_operation_id: parent = "" } = item.kind === "operation" ? item : {};
    if (item.operation_id === operation_id || family.has(parent)) family.add(item.operation_id);
    const span = family.has(item.operation_id) ? readSpan(item) : undefined;
    return span === undefined ? [] : [span];
  });
}

function readSpan(item: TranscriptItem): Span | undefined {
  // A task is an operation of its own.
  if (!("state" in item) || item.kind === "task" || item.kind === "end") return undefined;
  return readWork(item);
}

function readWork(item: OperationItem | TurnItem | CallItem | CompactionItem): Span {
  const { id, state, depth } = item;
  const start = Date.parse(item.started_at);
  const end = item.ended_at === undefined ? undefined : Date.parse(item.ended_at);
  const base = {
    id,
    state,
    start,
    end,
    wait: undefined,
    duration_ms: end === undefined ? undefined : end - start,
  };
  switch (item.kind) {
    case "operation": {
      const { message, operation_kind, usage } = item;
      // The error of an attempt that was followed by another one is that of its turn.
      const error = state === "failed" ? item.error : undefined;
      return { ...base, kind: "operation", depth: depth * 2, title: message ?? operation_kind, usage, error };
    }
    case "turn": {
      const { model, attempt, purpose, turn_id, event_index, usage, first_chunk_ms, receipt_items, error } =
        item;
      const name = purpose === "compaction" ? `${model}, summary` : model;
      return {
        ...base,
        kind: "turn",
        depth: depth * 2 + 1,
        title: attempt > 1 ? `${name}, attempt ${attempt}` : name,
        usage,
        first_chunk_ms,
        items: receipt_items,
        error: state === "failed" ? error : undefined,
        ...(turn_id !== undefined && { turn: { id: turn_id, eventIndex: event_index } }),
      };
    }
    case "call": {
      const { tool, args, result, waits_since, waited_ms, duration_ms = base.duration_ms } = item;
      const wait =
        waits_since !== undefined
          ? { start: Date.parse(waits_since), end: undefined }
          : waited_ms === undefined
            ? undefined
            : { start, end: start + waited_ms };
      const call = { ...base, duration_ms, wait, input: args, output: result };
      return { ...call, kind: "call", depth: depth * 2 + 2, title: tool };
    }
    case "compaction":
      return {
        ...base,
        kind: "compaction",
        depth: depth * 2 + 1,
        title: `history shortened (${item.reason})`,
      };
  }
}

/** The place of an item of a receipt: `AGENTS.md:8 #money` for a section. */
export function itemPlace({ id, file, line }: Pick<ReceiptItem, "id" | "file" | "line">): string {
  if (file === undefined) return id;
  const section = id.startsWith(`${file}#`) ? ` ${id.slice(file.length)}` : "";
  return `${file}${line === undefined ? "" : `:${line}`}${section}`;
}
