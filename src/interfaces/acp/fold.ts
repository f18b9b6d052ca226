import type { SessionUpdate, ToolCallContent } from "@agentclientprotocol/sdk";
import type { KitEvent } from "../../protocol/event.ts";
import { type CallShape, describeCall, diffOf, textContent } from "./call-view.ts";

type EventOf<Type extends KitEvent["type"]> = Extract<KitEvent, { type: Type }>;

export interface AcpFoldOptions {
  /** The absolute path of the session's folder. */
  readonly root: string;
  /** Returns the context window of a model, in tokens; undefined if it is unknown. */
  readonly windowOf?: (model: string) => number | undefined;
}

interface OpenCall extends CallShape {
  readonly id: string;
  readonly before: string | null | undefined;
}

/**
 * Folds the events of a session and its tasks into updates of the Agent Client Protocol. A fold lives as long as the editor has the
 * session open, because the ids of calls are unique in a session.
 */
export class AcpFold {
  readonly #options: AcpFoldOptions;
  readonly #open = new Map<string, OpenCall>();
  readonly #used = new Set<string>();
  /** The turn whose text the editor has, with the attempt that wrote it. */
  #said: { readonly turn: string | undefined; attempt: number; hasText: boolean } | undefined;
  #dollars: number | undefined = 0;

  constructor(options: AcpFoldOptions) {
    this.#options = options;
  }

  /**
   * Returns the updates of an event. `before` is the text of the file that a call changes, read when the call starts; `null` if
   * there is no such file.
   */
  push(event: KitEvent, before?: string | null): readonly SessionUpdate[] {
    switch (event.type) {
      case "tool_start":
        return this.#start(event, before);
      case "tool_progress": {
        const { progress } = event;
        const text = typeof progress === "string" ? progress : JSON.stringify(progress);
        return this.#update(event, { content: [textContent(text ?? "")] });
      }
      case "approval_request": {
        const change = this.#diff(event);
        return this.#update(event, { status: "pending", ...(change && { content: [change] }) });
      }
      case "approval":
        return this.#decided(event);
      case "tool_end":
        return this.#end(event);
      default:
        // The agent that started a task reads what the task says.
        return event.parent_operation_id === undefined ? this.#ofOperation(event) : [];
    }
  }

  /** The id by which the editor knows a call that has not ended. */
  idOf(call: { readonly operation_id: string; readonly tool_call_id: string }): string | undefined {
    return this.#open.get(keyOf(call))?.id;
  }

  /** Ends the calls that an abort has left open. */
  endOpen(): readonly SessionUpdate[] {
    const calls = [...this.#open.values()];
    this.#open.clear();
    return calls.map(({ id }) => ({ sessionUpdate: "tool_call_update", toolCallId: id, status: "failed" }));
  }

  #ofOperation(event: KitEvent): readonly SessionUpdate[] {
    switch (event.type) {
      case "turn_request": {
        if (event.purpose === "compaction") {
          this.#said = undefined;
          return [];
        }
        const isBrokenOff = this.#said?.hasText === true && this.#said.turn === event.turn_id;
        this.#said = { turn: event.turn_id, attempt: event.attempt, hasText: false };
        // The protocol cannot take back what the editor has.
        return isBrokenOff
          ? [this.#chunk("agent_message_chunk", "[The answer broke off, and begins again.]\n\n")]
          : [];
      }
      case "text_delta":
      case "reasoning_delta": {
        // A summary of the history is not for the person.
        if (this.#said === undefined) return [];
        this.#said.hasText = true;
        const isText = event.type === "text_delta";
        return [this.#chunk(isText ? "agent_message_chunk" : "agent_thought_chunk", event.text)];
      }
      case "turn":
        return event.purpose === "compaction" ? [] : this.#usage(event);
      default:
        return [];
    }
  }

  #chunk(sessionUpdate: "agent_message_chunk" | "agent_thought_chunk", text: string): SessionUpdate {
    const { turn = "turn", attempt = 1 } = this.#said ?? {};
    const messageId = attempt > 1 ? `${turn}-${attempt}` : turn;
    return { sessionUpdate, messageId, content: { type: "text", text } };
  }

  #usage({ model, usage }: EventOf<"turn">): readonly SessionUpdate[] {
    const { total } = usage.cost;
    this.#dollars = total === null || this.#dollars === undefined ? undefined : this.#dollars + total;
    const size = this.#options.windowOf?.(model);
    if (size === undefined) return [];
    const cost = this.#dollars === undefined ? {} : { cost: { amount: this.#dollars, currency: "USD" } };
    return [{ sessionUpdate: "usage_update", used: usage.input + usage.output, size, ...cost }];
  }

  #start(event: EventOf<"tool_start">, before: string | null | undefined): readonly SessionUpdate[] {
    const { tool, args, tool_call_id } = event;
    let id = tool_call_id;
    // Providers may give the same id again in a later turn.
    for (let count = 2; this.#used.has(id); count += 1) id = `${tool_call_id}-${count}`;
    this.#used.add(id);
    this.#open.set(keyOf(event), { id, tool, args, before });
    const described = describeCall({ tool, args }, this.#options.root);
    return [{ sessionUpdate: "tool_call", toolCallId: id, status: "in_progress", ...described }];
  }

  #decided(event: EventOf<"approval">): readonly SessionUpdate[] {
    if (!event.approved) return [];
    const call = this.#open.get(keyOf(event));
    if (call === undefined || event.args === undefined) return this.#update(event, { status: "in_progress" });
    this.#open.set(keyOf(event), { ...call, args: event.args });
    const described = describeCall({ tool: call.tool, args: event.args }, this.#options.root);
    return this.#update(event, { status: "in_progress", ...described });
  }

  #end(event: EventOf<"tool_end">): readonly SessionUpdate[] {
    const change = event.is_error ? undefined : this.#diff(event);
    const updates = this.#update(event, {
      status: event.is_error ? "failed" : "completed",
      content: [change ?? textContent(event.result)],
      rawOutput: { result: event.result },
    });
    this.#open.delete(keyOf(event));
    return updates;
  }

  #diff(event: {
    readonly operation_id: string;
    readonly tool_call_id: string;
  }): ToolCallContent | undefined {
    const call = this.#open.get(keyOf(event));
    return call && diffOf(call, this.#options.root, call.before);
  }

  #update(
    event: { readonly operation_id: string; readonly tool_call_id: string },
    fields: Omit<
      Extract<SessionUpdate, { sessionUpdate: "tool_call_update" }>,
      "sessionUpdate" | "toolCallId"
    >,
  ): readonly SessionUpdate[] {
    const call = this.#open.get(keyOf(event));
    return call === undefined ? [] : [{ sessionUpdate: "tool_call_update", toolCallId: call.id, ...fields }];
  }
}

function keyOf(call: { readonly operation_id: string; readonly tool_call_id: string }): string {
  return `${call.operation_id} ${call.tool_call_id}`;
}
