import { isRecord } from "../../base/record.ts";
import type { KitEvent } from "../../protocol/event.ts";
import type { UiChunk, UiQuestion, UiTask } from "../../protocol/ui.ts";
import { OpenWork } from "./open-work.ts";
import { toMessageId } from "./user-message.ts";

type EventOf<Type extends KitEvent["type"]> = Extract<KitEvent, { type: Type }>;
type CallEvent = EventOf<"tool_start" | "tool_progress" | "tool_end" | "approval_request" | "approval">;

/** A call as the page knows it. */
interface UiCall {
  /** Unique in the chat: see `toCallId`. */
  readonly id: string;
  readonly tool: string;
  readonly input: unknown;
  readonly kind: { providerExecuted?: true; dynamic?: true };
  /** The page's tool: the id under which the page's answer is awaited, once it is. */
  readonly isCallers: boolean;
  awaited?: string | undefined;
  /** Whether the page has it. Calls of tasks are shown once they wait for a decision. */
  isShown: boolean;
  isDenied: boolean;
  hasEnded: boolean;
}

/**
 * Folds the events of one operation and its tasks, from the first one on, into chunks of the AI SDK's UI message stream. The
 * same events give the same message, however their deltas are cut or joined.
 */
export class UiFold {
  readonly #operationId: string;
  /** The work that has not ended. */
  readonly work: OpenWork;
  readonly #calls = new Map<string, UiCall>();
  /** The ids of all calls that have started: a provider can use one of its own again and again. */
  readonly #callIds = new Set<string>();
  readonly #tasks = new Map<string, UiTask>();
  /** The calls whose arguments the model writes, until they start: what the page has of them. */
  readonly #written = new Map<string, { readonly id: string; length: number }>();
  readonly #questions = new Map<string, UiQuestion>();
  #open:
    | { readonly kind: "text" | "reasoning"; readonly id: string; readonly turn: string | undefined }
    | undefined;
  #parts = 0;
  #inStep = false;
  /** The turn that a model answers; until its `turn`, what it said can become void. */
  #turn: string | undefined;
  #hasFailed = false;

  constructor(operationId: string) {
    this.#operationId = operationId;
    this.work = new OpenWork(operationId);
  }

  /** The calls of the page's tools that wait for its answer: the ids of their waits, by `toolCallId`. */
  get awaitedOfPage(): ReadonlyMap<string, string> {
    return new Map(
      [...this.#calls.values()].flatMap(({ id, awaited }) => (awaited === undefined ? [] : [[id, awaited]])),
    );
  }

  /** The first chunk of a stream. */
  start(): UiChunk {
    return { type: "start", messageId: this.#operationId };
  }

  /** Ends the stream at an event where the operation rests: the page's answer goes on after it. */
  handOver({ index }: KitEvent): readonly UiChunk[] {
    return [
      ...this.#endStep(),
      { type: "finish", finishReason: "tool-calls", messageMetadata: { kit_index: index } },
    ];
  }

  /** Ends the stream of an operation that ended before it had begun. */
  endUnbegun(): readonly UiChunk[] {
    return [
      { type: "abort", reason: "stopped" },
      { type: "finish", finishReason: "other" },
    ];
  }

  push(event: KitEvent): readonly UiChunk[] {
    this.work.push(event);
    switch (event.type) {
      case "tool_start":
      case "tool_progress":
      case "tool_end":
      case "approval_request":
      case "approval":
        return this.#ofCall(event);
      case "task_start": {
        const { task_id: id, prompt, task_agent: agent, role } = event;
        const task: UiTask = { prompt, ...(agent && { agent }), ...(role && { role }), state: "running" };
        this.#tasks.set(id, task);
        return [{ type: "data-task", id, data: task }];
      }
      case "task_end": {
        const { task_id: id, is_error } = event;
        const task = this.#tasks.get(id) ?? { prompt: "" };
        return [{ type: "data-task", id, data: { ...task, state: is_error ? "failed" : "done" } }];
      }
      default:
        // The texts of a task are for its parent, not for the page.
        return event.operation_id === this.#operationId ? this.#ofOperation(event) : [];
    }
  }

  #ofOperation(event: KitEvent): readonly UiChunk[] {
    switch (event.type) {
      case "operation_start":
        // The answer that a killed process was reading is requested again.
        return this.#turn === undefined ? [] : this.#reset();
      case "turn_request": {
        if (event.purpose === "compaction") return [];
        const isAgain = this.#turn !== undefined;
        this.#turn = event.turn_id ?? "";
        if (isAgain) return this.#reset();
        const ended = this.#endStep();
        this.#inStep = true;
        return [...ended, { type: "start-step" }];
      }
      case "text_delta":
        return this.#delta("text", event);
      case "reasoning_delta":
        return this.#delta("reasoning", event);
      case "tool_args_delta":
        return this.#turn === undefined ? [] : this.#writes(event);
      case "source":
      case "file":
        // The text around it goes on.
        return this.#turn === undefined ? [] : [toUiAttachment(event)];
      case "joined": {
        const { message: text, client_id, joined_from } = event;
        // `toUiMessage` leaves it out: the history has it as a message of the user.
        // It joins before a turn: what an ended process had of that turn is void, and is not voided again after it.
        const voided = this.#turn === undefined ? this.#close() : this.#reset();
        this.#turn = undefined;
        return [
          ...voided,
          { type: "data-joined", id: toMessageId(client_id ?? joined_from), data: { text } },
        ];
      }
      case "turn":
        if (event.purpose === "compaction") return [];
        this.#turn = undefined;
        return [...this.#close(), { type: "message-metadata", messageMetadata: { model: event.model } }];
      case "error": {
        const { error, will_retry, retry_in_ms } = event;
        if (will_retry) {
          const data = { message: error.message, ...(retry_in_ms === undefined ? {} : { retry_in_ms }) };
          return [{ type: "data-notice", data, transient: true }];
        }
        this.#hasFailed = true;
        return [...this.#close(), { type: "error", errorText: error.message }];
      }
      case "aborted":
        return [...this.#endStep(), { type: "abort", reason: "stopped" }];
      case "operation":
        return this.#finish(event);
      default:
        return [];
    }
  }

  #finish({ is_error, is_aborted, duration_ms, usage }: EventOf<"operation">): readonly UiChunk[] {
    const messageMetadata = { duration_ms, ...(usage === undefined ? {} : { usage }) };
    const finishReason = is_aborted === true ? "other" : is_error ? "error" : "stop";
    const isUnsaid = finishReason === "error" && !this.#hasFailed;
    return [
      ...this.#endStep(),
      ...(isUnsaid ? [{ type: "error", errorText: "The agent failed." } as const] : []),
      { type: "finish", finishReason, messageMetadata },
    ];
  }

  #ofCall(event: CallEvent): readonly UiChunk[] {
    const key = `${event.operation_id} ${event.tool_call_id}`;
    const isOwn = event.operation_id === this.#operationId;
    if (event.type === "tool_start") {
      const before = this.#calls.get(key);
      const call: UiCall = {
        id: this.#written.get(key)?.id ?? this.#callId(event.tool_call_id, before),
        tool: event.tool,
        input: event.args,
        kind: toUiKind(event.kind, event.mcp !== undefined),
        isCallers: event.kind === "caller",
        isShown: isOwn,
        isDenied: false,
        hasEnded: false,
      };
      this.#calls.set(key, call);
      this.#callIds.add(call.id);
      this.#written.delete(key);
      return isOwn ? [...this.#close(), toInput(call, event.args)] : [];
    }
    const call = this.#calls.get(key);
    if (call === undefined) return [];
    const toolCallId = call.id;
    if (call.isCallers && event.type !== "tool_end") {
      call.awaited = event.type === "approval_request" ? event.approval_id : undefined;
      return [];
    }
    if (event.type === "approval_request" && event.kind === "question") {
      const { message = "", schema = {} } = event;
      return this.#question(event.approval_id, {
        tool_call_id: toolCallId,
        message,
        schema,
        state: "waiting",
      });
    }
    if (event.type === "approval") {
      const question = this.#questions.get(event.approval_id);
      const state = event.approved ? "answered" : "declined";
      if (question !== undefined) return this.#question(event.approval_id, { ...question, state });
    }
    if (event.type === "approval_request") {
      const isNew = !call.isShown;
      call.isShown = true;
      const request = { type: "tool-approval-request", toolCallId, approvalId: event.approval_id } as const;
      return isNew ? [toInput(call, event.args), request] : [request];
    }
    if (!call.isShown) return [];
    switch (event.type) {
      case "approval": {
        const { approval_id: approvalId, approved, reason, args } = event;
        call.isDenied = !approved;
        const response = {
          type: "tool-approval-response",
          approvalId,
          approved,
          ...(reason === undefined ? {} : { reason }),
        } as const;
        return approved && args !== undefined ? [toInput(call, args), response] : [response];
      }
      case "tool_progress":
        return [
          {
            type: "tool-output-available",
            toolCallId,
            output: forPage(event.progress),
            preliminary: true,
            ...call.kind,
          },
        ];
      case "tool_end":
        call.hasEnded = true;
        if (call.isDenied) return [{ type: "tool-output-denied", toolCallId }];
        return event.is_error
          ? [{ type: "tool-output-error", toolCallId, errorText: event.result, ...call.kind }]
          : [{ type: "tool-output-available", toolCallId, output: parsed(event.result), ...call.kind }];
    }
  }

  /** The arguments of a call as the model writes them, without a gap. The text before goes on, if the model does. */
  #writes(event: EventOf<"tool_args_delta">): readonly UiChunk[] {
    const { tool_call_id, tool: toolName, text, offset, kind } = event;
    const key = `${event.operation_id} ${tool_call_id}`;
    const before = this.#written.get(key);
    if (offset !== (before?.length ?? 0)) return [];
    const toolCallId = before?.id ?? this.#callId(tool_call_id, this.#calls.get(key));
    this.#written.set(key, { id: toolCallId, length: offset + text.length });
    const delta: UiChunk = { type: "tool-input-delta", toolCallId, inputTextDelta: text };
    if (before !== undefined) return [delta];
    const isDynamic = toolName.startsWith("mcp__");
    return [{ type: "tool-input-start", toolCallId, toolName, ...toUiKind(kind, isDynamic) }, delta];
  }

  #question(id: string, data: UiQuestion): readonly UiChunk[] {
    this.#questions.set(id, data);
    return [{ type: "data-question", id, data: { ...data, schema: forPage(data.schema) } }];
  }

  /** A call that starts again after a killed process keeps its id. */
  #callId(id: string, before: UiCall | undefined): string {
    if (before?.hasEnded === false) return before.id;
    const first = toCallId(this.#operationId, id);
    let own = first;
    for (let count = 2; this.#callIds.has(own); count += 1) own = `${first}-${count}`;
    return own;
  }

  #delta(kind: "text" | "reasoning", event: EventOf<"text_delta" | "reasoning_delta">): readonly UiChunk[] {
    // A summary of the history is not said to the page.
    if (this.#turn === undefined) return [];
    const { turn_id: turn, text: delta } = event;
    const before: UiChunk[] = [];
    if (this.#open?.kind !== kind || this.#open.turn !== turn) {
      before.push(...this.#close());
      this.#parts += 1;
      this.#open = { kind, turn, id: `${turn}-${this.#parts}` };
      before.push({ type: `${kind}-start`, id: this.#open.id });
    }
    return [...before, { type: `${kind}-delta`, id: this.#open.id, delta }];
  }

  /** Voids the text of the running turn. */
  #reset(): readonly UiChunk[] {
    this.#written.clear();
    return [...this.#close(), { type: "reset-step" }];
  }

  #close(): readonly UiChunk[] {
    const open = this.#open;
    this.#open = undefined;
    return open === undefined ? [] : [{ type: `${open.kind}-end`, id: open.id }];
  }

  #endStep(): readonly UiChunk[] {
    const chunks: UiChunk[] = [...this.#close()];
    if (this.#inStep) chunks.push({ type: "finish-step" });
    this.#inStep = false;
    return chunks;
  }
}

function toUiAttachment(event: EventOf<"source" | "file">): UiChunk {
  if (event.type === "file") {
    const { media_type: mediaType, data } = event;
    return { type: "file", url: /^https:/.test(data) ? data : `data:${mediaType};base64,${data}`, mediaType };
  }
  const { source_id: sourceId, url, title, media_type: mediaType = "", filename } = event;
  if (url !== undefined)
    return { type: "source-url", sourceId, url, ...(title === undefined ? {} : { title }) };
  const name = filename === undefined ? {} : { filename };
  return { type: "source-document", sourceId, mediaType, title: title ?? "", ...name };
}

/**
 * The id of a call in a chat. A provider's id can occur again in a later answer, and clients look a call up by its id among all
 * messages: they would give the result of the new call to the old one.
 */
export function toCallId(operationId: string, id: string): string {
  return `${operationId}-${id}`;
}

/** The calls of MCP servers are dynamic parts, so that those of the project can be typed ones. */
function toUiKind(kind: "caller" | undefined, isDynamic: boolean): UiCall["kind"] {
  return { ...(kind === "caller" ? {} : { providerExecuted: true }), ...(isDynamic && { dynamic: true }) };
}

function toInput({ id, tool, kind }: UiCall, input: unknown): UiChunk {
  return { type: "tool-input-available", toolCallId: id, toolName: tool, input: forPage(input), ...kind };
}

/** Tools return texts; those that are JSON are shown as the values that they were. */
function parsed(text: string): unknown {
  if (!/^\s*[[{]/.test(text)) return text;
  try {
    return forPage(JSON.parse(text));
  } catch {
    return text;
  }
}

/**
 * A value without the keys that the AI SDK refuses, because they could change prototypes: one of them in what a tool has read would
 * end every stream of the answer with an error.
 */
function forPage(value: unknown): unknown {
  const text = JSON.stringify(value) ?? "null";
  if (!/"(?:__proto__|constructor)":/.test(text)) return value;
  return JSON.parse(text, (key, part) =>
    key === "__proto__" || (key === "constructor" && isRecord(part) && Object.hasOwn(part, "prototype"))
      ? undefined
      : part,
  );
}
