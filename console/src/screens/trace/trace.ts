import type { KitEvent, Usage } from "../../../../src/client/index.ts";

/** A part of an operation that takes time: a turn, a tool call, a task, a compaction. */
export interface Span {
  readonly id: string;
  readonly kind: "operation" | "turn" | "tool" | "task" | "compaction";
  readonly title: string;
  readonly depth: number;
  /** ms since the epoch. */
  readonly start: number;
  readonly end: number | undefined;
  readonly isError: boolean;
  readonly model?: string;
  readonly usage?: Usage;
  readonly first_chunk_ms?: number | undefined;
  /** For a turn: its id, and the index of its last request. */
  readonly turn?: { readonly id: string; readonly eventIndex: number } | undefined;
  /** For a turn: how many rules, specs and other items were in the model's context. */
  readonly items?: number | undefined;
  /** The arguments or the message; `output` is the result or the answer. */
  readonly input?: unknown;
  readonly output?: string;
}

export interface Operation {
  readonly id: string;
  readonly session: string;
  readonly spans: readonly Span[];
}

interface OpenOperation {
  readonly id: string;
  readonly session: string;
  readonly spans: Draft[];
  /** The newest span of each turn and call. */
  readonly open: Map<string, Draft>;
}

type Draft = { -readonly [Field in keyof Span]: Span[Field] };

/** The operations of an instance with their spans, the newest first. */
export function readTrace(events: readonly KitEvent[]): readonly Operation[] {
  const operations = new Map<string, OpenOperation>();
  // A task is a separate operation, below the one that started it.
  const parents = new Map<string, string>();
  for (const event of events) {
    if (event.type === "operation_start" && event.parent_operation_id !== undefined) {
      parents.set(event.operation_id, event.parent_operation_id);
    }
    let root = event.operation_id;
    let depth = 0;
    for (let above = parents.get(root); above !== undefined && depth < 20; above = parents.get(root)) {
      root = above;
      depth += 1;
    }
    const operation: OpenOperation = operations.get(root) ?? {
      id: root,
      session: event.session ?? "default",
      spans: [],
      open: new Map(),
    };
    operations.set(root, operation);
    const at = Date.parse(event.timestamp);
    const begin = (key: string, span: Pick<Draft, "kind" | "title"> & Partial<Draft>): void => {
      const known = operation.open.get(key);
      if (known !== undefined && known.end === undefined) return;
      const drawn: Draft = {
        id: `${key}-${event.index}`,
        depth: depth * 2,
        start: at,
        end: undefined,
        isError: false,
        ...span,
      };
      operation.spans.push(drawn);
      operation.open.set(key, drawn);
    };
    const change = (key: string, fields: Partial<Draft>): void => {
      const span = operation.open.get(key);
      if (span !== undefined) Object.assign(span, fields);
    };
    const turn = `turn ${event.turn_id}`;
    switch (event.type) {
      case "operation_start":
        begin(`operation ${event.operation_id}`, {
          kind: "operation",
          title: event.message ?? event.operation_kind,
          input: event.message,
        });
        break;
      case "operation":
        change(`operation ${event.operation_id}`, {
          end: at,
          isError: event.is_error,
          ...(event.usage === undefined ? {} : { usage: event.usage }),
        });
        break;
      case "turn_request": {
        const items = event.receipt?.items;
        const asked =
          event.turn_id === undefined ? undefined : { id: event.turn_id, eventIndex: event.index };
        const model = event.purpose === "compaction" ? `${event.model}, summary` : event.model;
        const title = event.attempt > 1 ? `${model}, attempt ${event.attempt}` : model;
        if (event.attempt > 1) change(turn, { end: at, isError: true });
        begin(turn, { kind: "turn", title, depth: depth * 2 + 1, model: event.model, items, turn: asked });
        break;
      }
      case "text_delta":
        change(turn, { output: (operation.open.get(turn)?.output ?? "") + event.text });
        break;
      case "turn":
        change(turn, { usage: event.usage, first_chunk_ms: event.first_chunk_ms });
        break;
      case "turn_end":
        change(turn, { end: at, isError: event.is_error === true });
        break;
      case "tool_start":
        begin(`tool ${event.tool_call_id}`, {
          kind: "tool",
          title: event.tool,
          depth: depth * 2 + 2,
          input: event.args,
        });
        break;
      case "tool_end":
        change(`tool ${event.tool_call_id}`, { end: at, isError: event.is_error, output: event.result });
        break;
      case "compaction_start":
        begin(`compaction ${event.operation_id}`, {
          kind: "compaction",
          title: `history shortened (${event.reason})`,
          depth: depth * 2 + 1,
        });
        break;
      case "compaction_end":
        change(`compaction ${event.operation_id}`, { end: at, isError: event.is_error });
        break;
      default:
    }
  }
  return [...operations.values()].filter(({ spans }) => spans.length > 0).reverse();
}
