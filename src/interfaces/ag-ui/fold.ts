import type { AgUiEvent } from "../../protocol/ag-ui.ts";
import type { KitEvent } from "../../protocol/event.ts";
import type { UiChunk } from "../../protocol/ui.ts";
import { UiFold } from "../ai-sdk/fold.ts";
import type { OpenWork } from "../ai-sdk/open-work.ts";

interface AgUiRun {
  readonly operationId: string;
  readonly threadId: string;
  readonly runId: string;
  /** The index of the last event that an earlier run of the same operation told. */
  readonly after?: number | undefined;
  /** The messages of the thread before this run. */
  readonly messages?: readonly object[];
}

type Waiting = Extract<KitEvent, { type: "approval_request" }>;

/** Arguments, or a denial with its reason. */
const answerSchema = {
  type: "object",
  properties: { approved: { type: "boolean" }, reason: { type: "string" }, args: { type: "object" } },
};

/**
 * Folds the events of one operation and its tasks, from the first one on, into the events of one run of AG-UI. A decision ends a run;
 * the next run goes on with the operation.
 */
export class AgUiFold {
  readonly #run: AgUiRun;
  readonly #ui: UiFold;
  /** The calls that were asked for, and not yet decided, by their ids in the interface. */
  readonly #waiting = new Map<string, Waiting>();
  /** The calls of the front end's tools: it knows their results. */
  readonly #ofCaller = new Set<string>();
  readonly #known = new Set<string>();
  /** The calls whose arguments the model writes. */
  readonly #written = new Set<string>();
  readonly #messages: (Record<string, unknown> & { content: string })[] = [];
  #keptMessages = 0;
  #steps = 0;
  #error = "The agent failed.";
  #isStopped = false;
  /** Whether the run has ended. */
  isOver = false;

  constructor(run: AgUiRun) {
    this.#run = run;
    this.#ui = new UiFold(run.operationId);
  }

  /** The work that has not ended. */
  get work(): OpenWork {
    return this.#ui.work;
  }

  /** The requests for which the run waits, by the ids of their calls. */
  get waiting(): ReadonlyMap<string, Waiting> {
    return this.#waiting;
  }

  start(): readonly AgUiEvent[] {
    const { threadId, runId } = this.#run;
    return [{ type: "RUN_STARTED", threadId, runId }];
  }

  /** Returns the events of a run that an event of kit becomes. */
  push(event: KitEvent): readonly AgUiEvent[] {
    const chunks = this.#ui.push(event);
    for (const chunk of chunks)
      if (event.type === "approval_request") {
        if (chunk.type === "tool-approval-request") this.#waiting.set(chunk.toolCallId, event);
        if (chunk.type === "data-question") this.#waiting.set(chunk.data.tool_call_id, event);
      }
    if (event.type === "approval_request" && event.kind === "caller")
      for (const [id, approvalId] of this.#ui.awaitedOfPage)
        if (approvalId === event.approval_id) {
          this.#waiting.set(id, event);
          this.#ofCaller.add(id);
        }
    if (event.type === "approval")
      for (const [id, { approval_id }] of this.#waiting)
        if (approval_id === event.approval_id) this.#waiting.delete(id);
    const { after = 0 } = this.#run;
    const events = chunks.flatMap((chunk) => this.#toEvents(chunk));
    if (event.index < after) return [];
    if (event.index > after) return events;
    // State of a run does not cross its end.
    for (const chunk of this.#ui.handOver(event)) this.#toEvents(chunk);
    this.isOver = false;
    this.#messages.length = 0;
    this.#keptMessages = 0;
    return [];
  }

  /** Ends the run at an event where nothing goes on before a decision. */
  handOver(event: KitEvent): readonly AgUiEvent[] {
    return this.#ui.handOver(event).flatMap((chunk) => this.#toEvents(chunk));
  }

  /** Ends the run of an operation that ended before it had begun. */
  endUnbegun(): readonly AgUiEvent[] {
    return this.#ui.endUnbegun().flatMap((chunk) => this.#toEvents(chunk));
  }

  #toEvents(chunk: UiChunk): readonly AgUiEvent[] {
    switch (chunk.type) {
      case "start-step":
        this.#keptMessages = this.#messages.length;
        this.#steps += 1;
        return [{ type: "STEP_STARTED", stepName: `step ${this.#steps}` }];
      case "finish-step":
        return [{ type: "STEP_FINISHED", stepName: `step ${this.#steps}` }];
      case "reset-step":
        // No event takes a text back.
        this.#messages.length = this.#keptMessages;
        return [
          ...this.#endWritten(),
          {
            type: "MESSAGES_SNAPSHOT",
            messages: [...(this.#run.messages ?? []), ...structuredClone(this.#messages)],
          },
        ];
      case "text-start":
        this.#messages.push({ id: chunk.id, role: "assistant", content: "" });
        return [{ type: "TEXT_MESSAGE_START", messageId: chunk.id, role: "assistant" }];
      case "reasoning-start":
        this.#messages.push({ id: chunk.id, role: "reasoning", content: "" });
        return [
          { type: "REASONING_START", messageId: chunk.id },
          { type: "REASONING_MESSAGE_START", messageId: chunk.id, role: "reasoning" },
        ];
      case "text-delta":
      case "reasoning-delta": {
        const { id: messageId, delta } = chunk;
        const message = this.#messages.at(-1);
        if (message !== undefined) message.content += delta;
        const type = chunk.type === "text-delta" ? "TEXT_MESSAGE_CONTENT" : "REASONING_MESSAGE_CONTENT";
        return delta === "" ? [] : [{ type, messageId, delta }];
      }
      case "text-end":
        return [{ type: "TEXT_MESSAGE_END", messageId: chunk.id }];
      case "reasoning-end":
        return [
          { type: "REASONING_MESSAGE_END", messageId: chunk.id },
          { type: "REASONING_END", messageId: chunk.id },
        ];
      case "tool-input-start":
        this.#written.add(chunk.toolCallId);
        return [toCallStart(chunk)];
      case "tool-input-delta":
        return [{ type: "TOOL_CALL_ARGS", toolCallId: chunk.toolCallId, delta: chunk.inputTextDelta }];
      case "tool-input-available":
        return this.#call(chunk);
      case "tool-output-available":
        return chunk.preliminary
          ? [
              {
                type: "ACTIVITY_SNAPSHOT",
                messageId: `progress-${chunk.toolCallId}`,
                activityType: "tool_progress",
                content: { progress: chunk.output },
              },
            ]
          : this.#result(chunk.toolCallId, chunk.output);
      case "tool-output-error":
        return this.#result(chunk.toolCallId, chunk.errorText);
      case "tool-output-denied":
        return this.#result(chunk.toolCallId, "The call was denied.");
      case "data-task": {
        const { id: subagentRunId, data } = chunk;
        if (data.state === "failed")
          return [{ type: "SUBAGENT_ERROR", subagentRunId, message: "The task failed." }];
        if (data.state === "done") return [{ type: "SUBAGENT_FINISHED", subagentRunId }];
        const name = data.agent ?? data.role ?? "task";
        return [{ type: "SUBAGENT_STARTED", subagentRunId, name, description: data.prompt.slice(0, 200) }];
      }
      case "data-joined": {
        const { id: messageId, data } = chunk;
        this.#messages.push({ id: messageId, role: "user", content: data.text });
        return [
          { type: "TEXT_MESSAGE_START", messageId, role: "user" },
          { type: "TEXT_MESSAGE_CONTENT", messageId, delta: data.text },
          { type: "TEXT_MESSAGE_END", messageId },
        ];
      }
      case "error":
        this.#error = chunk.errorText;
        return [];
      case "abort":
        this.#isStopped = true;
        return [];
      case "finish":
        return [...this.#endWritten(), this.#finish(chunk.finishReason)];
      default:
        return [];
    }
  }

  #call(chunk: Extract<UiChunk, { type: "tool-input-available" }>): readonly AgUiEvent[] {
    const { toolCallId, toolName, input } = chunk;
    // Other arguments of an approver: the decision has them.
    if (this.#known.has(toolCallId)) return [];
    this.#known.add(toolCallId);
    const args = JSON.stringify(input ?? {});
    const toolCall = { id: toolCallId, type: "function", function: { name: toolName, arguments: args } };
    this.#messages.push({ id: `call-${toolCallId}`, role: "assistant", content: "", toolCalls: [toolCall] });
    const end: AgUiEvent = { type: "TOOL_CALL_END", toolCallId };
    if (this.#written.delete(toolCallId)) return [end];
    return [toCallStart(chunk), { type: "TOOL_CALL_ARGS", toolCallId, delta: args }, end];
  }

  /** Ends the calls that the model did not finish. */
  #endWritten(): readonly AgUiEvent[] {
    const events = [...this.#written].map((toolCallId) => ({ type: "TOOL_CALL_END", toolCallId }));
    this.#written.clear();
    return events;
  }

  #result(toolCallId: string, output: unknown): readonly AgUiEvent[] {
    if (this.#ofCaller.has(toolCallId)) return [];
    const content = typeof output === "string" ? output : JSON.stringify(output);
    const messageId = `result-${toolCallId}`;
    this.#messages.push({ id: messageId, role: "tool", toolCallId, content });
    return [{ type: "TOOL_CALL_RESULT", messageId, toolCallId, content, role: "tool" }];
  }

  #finish(reason: "stop" | "tool-calls" | "error" | "other"): AgUiEvent {
    this.isOver = true;
    const { threadId, runId } = this.#run;
    if (reason === "error") return { type: "RUN_ERROR", message: this.#error };
    const finished = (outcome: object): AgUiEvent => ({ type: "RUN_FINISHED", threadId, runId, outcome });
    if (this.#isStopped) return finished({ type: "cancelled" });
    if (reason !== "tool-calls") return finished({ type: "success" });
    const interrupts = [...this.#waiting].flatMap(([toolCallId, { kind, approval_id: id, ...request }]) => {
      if (kind === "caller") return [];
      const { tool, args, expires_at: expiresAt } = request;
      const more = { metadata: { tool, args }, ...(expiresAt === undefined ? {} : { expiresAt }) };
      const [reason, message, responseSchema] =
        kind === "question"
          ? ["input_required", request.message, request.schema]
          : ["tool_call", `${tool} needs an approval.`, answerSchema];
      return [{ id, reason, message, toolCallId, responseSchema, ...more }];
    });
    if (interrupts.length > 0) return finished({ type: "interrupt", interrupts });
    return finished({ type: "success", pendingToolCallIds: [...this.#waiting.keys()] });
  }
}

function toCallStart({ toolCallId, toolName }: { toolCallId: string; toolName: string }): AgUiEvent {
  const parentMessageId = `call-${toolCallId}`;
  return { type: "TOOL_CALL_START", toolCallId, toolCallName: toolName, parentMessageId };
}
