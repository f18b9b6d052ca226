import type { SessionUpdate, ToolCallContent, ToolCallUpdate } from "@agentclientprotocol/sdk";
import type { KitEvent } from "../../protocol/event.ts";
import type { Message } from "../../protocol/message.ts";
import { type CallShape, describeCall, diffOf, textContent } from "./call-view.ts";

interface CallKey {
  readonly operation_id: string;
  readonly tool_call_id: string;
}

type Turn = Extract<KitEvent, { type: "turn" }>;

interface OpenCall extends CallShape {
  readonly id: string;
  readonly before?: string | null | undefined;
}

type ChunkKind = "user_message_chunk" | "agent_message_chunk" | "agent_thought_chunk";

/** A message of a session's log, with its position there. */
export interface ReplayedMessage {
  readonly position: number;
  readonly operation_id: string;
  readonly message: Message;
}

/**
 * Folds the events of a session and its tasks into updates of the Agent Client Protocol, and the messages of its log. A fold lives as
 * long as the editor has the session open, because the ids of calls are unique in a session.
 */
export class AcpFold {
  readonly #root: string;
  readonly #open = new Map<string, OpenCall>();
  readonly #used = new Set<string>();
  /** The turn that a model answers, and whether the editor has some of the answer. */
  #turn: { readonly id: string | undefined; readonly messageId: string; hasText: boolean } | undefined;

  readonly #windowOf: (model: string) => number | undefined;
  /** US dollars of the session; undefined once a part of them is not known. */
  #cost: number | undefined = 0;

  /**
   * `root` is the absolute path of the session's folder; `windowOf` the context window of a model in tokens, if it is known. The log of
   * a reopened session has no costs, so they stay unknown.
   */
  constructor(
    root: string,
    windowOf: (model: string) => number | undefined = () => undefined,
    isReopened = false,
  ) {
    this.#root = root;
    this.#windowOf = windowOf;
    if (isReopened) this.#cost = undefined;
  }

  /**
   * Returns the updates of an event. `before` is the text of the file that a call changes, read when the call starts; `null` if
   * there is no such file.
   */
  push(event: KitEvent, before?: string | null): readonly SessionUpdate[] {
    switch (event.type) {
      case "tool_start":
        return this.#start(event, event, before);
      case "tool_progress":
        return this.#update(event, { content: [textContent(JSON.stringify(event.progress) ?? "")] });
      case "approval_request": {
        const change = this.#diff(event);
        return this.#update(event, { status: "pending", ...(change && { content: [change] }) });
      }
      case "approval": {
        const call = this.#open.get(keyOf(event));
        if (!event.approved || call === undefined) return [];
        const decided = { ...call, args: event.args ?? call.args };
        this.#open.set(keyOf(event), decided);
        return this.#update(event, { status: "in_progress", ...describeCall(decided, this.#root) });
      }
      case "tool_end":
        return this.#end(event, event.is_error, event.result);
      case "turn":
        return this.#use(event);
      default:
        // The agent that started a task reads what the task says.
        return event.parent_operation_id === undefined ? this.#ofOperation(event) : [];
    }
  }

  /** Returns the conversation of a log. Kit's own messages, such as guidelines and summaries, are left out. */
  replay(messages: readonly ReplayedMessage[]): readonly SessionUpdate[] {
    const updates = messages.flatMap(({ position, operation_id, message }) => {
      const messageId = `message-${position}`;
      if (message.role === "user")
        return textsOfPerson(message).map((text) => chunk("user_message_chunk", messageId, text));
      if (message.role === "tool")
        return message.content.flatMap((part) => {
          const texts = part.content.map((each) => (each.type === "text" ? each.text : "[image]"));
          return this.#end({ ...part, operation_id }, part.is_error, texts.join("\n"));
        });
      return message.content.flatMap((part) => {
        if (part.type === "tool_call") return this.#start({ ...part, operation_id }, part);
        const kind = part.type === "text" ? "agent_message_chunk" : "agent_thought_chunk";
        return part.text === "" ? [] : [chunk(kind, messageId, part.text)];
      });
    });
    return [...updates, ...this.endOpen()];
  }

  /** Returns the id by which the editor knows a call that has not ended. */
  idOf(call: CallKey): string | undefined {
    return this.#open.get(keyOf(call))?.id;
  }

  /** Ends the calls that an abort or a killed process has left open. */
  endOpen(): readonly SessionUpdate[] {
    const calls = [...this.#open.values()];
    this.#open.clear();
    return calls.map(({ id }) => ({ sessionUpdate: "tool_call_update", toolCallId: id, status: "failed" }));
  }

  /** Says how full the context is. Tasks and summaries have contexts of their own, and only cost. */
  #use({ model, usage, purpose, parent_operation_id }: Turn): readonly SessionUpdate[] {
    const { total } = usage.cost;
    this.#cost = this.#cost === undefined || total === null ? undefined : this.#cost + total;
    const size = this.#windowOf(model);
    if (size === undefined || parent_operation_id !== undefined || purpose === "compaction") return [];
    const cost = this.#cost === undefined ? {} : { cost: { amount: this.#cost, currency: "USD" } };
    return [{ sessionUpdate: "usage_update", used: usage.input + usage.output, size, ...cost }];
  }

  #ofOperation(event: KitEvent): readonly SessionUpdate[] {
    if (event.type === "turn_request") {
      const { turn_id: id, attempt } = event;
      const isBrokenOff = this.#turn?.hasText === true && this.#turn.id === id;
      const messageId = attempt > 1 ? `${id}-${attempt}` : (id ?? "turn");
      // A summary of the history is not for the person.
      this.#turn = event.purpose === "compaction" ? undefined : { id, messageId, hasText: false };
      // The protocol cannot take back what the editor has.
      const remark = "[The answer broke off, and begins again.]\n\n";
      return isBrokenOff ? [chunk("agent_message_chunk", messageId, remark)] : [];
    }
    if ((event.type !== "text_delta" && event.type !== "reasoning_delta") || this.#turn === undefined)
      return [];
    this.#turn.hasText = true;
    const kind = event.type === "text_delta" ? "agent_message_chunk" : "agent_thought_chunk";
    return [chunk(kind, this.#turn.messageId, event.text)];
  }

  #start(key: CallKey, { tool, args }: CallShape, before?: string | null): readonly SessionUpdate[] {
    let id = key.tool_call_id;
    // Providers may give the same id again in a later turn.
    for (let count = 2; this.#used.has(id); count += 1) id = `${key.tool_call_id}-${count}`;
    this.#used.add(id);
    this.#open.set(keyOf(key), { id, tool, args, before });
    const described = describeCall({ tool, args }, this.#root);
    return [{ sessionUpdate: "tool_call", toolCallId: id, status: "in_progress", ...described }];
  }

  #end(key: CallKey, isError: boolean, result: string): readonly SessionUpdate[] {
    const change = isError ? undefined : this.#diff(key);
    const content = [change ?? textContent(result)];
    const updates = this.#update(key, { status: isError ? "failed" : "completed", content });
    this.#open.delete(keyOf(key));
    return updates;
  }

  #diff(key: CallKey): ToolCallContent | undefined {
    const call = this.#open.get(keyOf(key));
    return call && diffOf(call, this.#root, call.before);
  }

  #update(key: CallKey, fields: Omit<ToolCallUpdate, "toolCallId">): readonly SessionUpdate[] {
    const id = this.idOf(key);
    return id === undefined ? [] : [{ sessionUpdate: "tool_call_update", toolCallId: id, ...fields }];
  }
}

function keyOf(call: CallKey): string {
  return `${call.operation_id} ${call.tool_call_id}`;
}

function chunk(sessionUpdate: ChunkKind, messageId: string, text: string): SessionUpdate {
  return { sessionUpdate, messageId, content: { type: "text", text } };
}

/** Returns the texts of the person. For a skill, this is its command: the rest of the message is the skill's own text. */
function textsOfPerson({ source, content }: Extract<Message, { role: "user" }>): readonly string[] {
  const texts = content.map((part) => (part.type === "text" ? part.text : `[${part.type}]`));
  if (source === undefined) return texts;
  const [, name] = (source === "skill" && /^# Skill: (.+)/.exec(texts[0] ?? "")) || [];
  return name === undefined ? [] : [`/${name}`];
}
