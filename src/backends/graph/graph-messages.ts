import type { AIMessage, BaseMessage, ToolMessage } from "@langchain/core/messages";
import { isRecord } from "../../base/record.ts";
import type { Message, ToolResultPart } from "../../protocol/message.ts";
import { noUsage, textOf } from "../../protocol/read-records.ts";
import type { BackendMessage, BackendOperation, TurnRequest } from "../contract.ts";
import { partsText } from "../history.ts";
import type { GraphPeers } from "./graph-peers.ts";

/** Converts messages of kit to messages of LangChain: the same ids, one message for each result. */
export function toLangChain(messages: readonly BackendMessage[], peers: GraphPeers): BaseMessage[] {
  const { AIMessage, HumanMessage } = peers.messages;
  return messages.flatMap((message): BaseMessage[] => {
    const { id } = message;
    if (message.role === "user") return [new HumanMessage({ id, content: contentOf(message) })];
    if (message.role === "tool") return message.content.map((result) => toToolMessage(result, peers));
    const tool_calls = message.content.flatMap((part) =>
      part.type === "tool_call"
        ? [
            {
              id: part.tool_call_id,
              name: part.tool,
              args: isRecord(part.args) ? { ...part.args } : {},
              type: "tool_call" as const,
            },
          ]
        : [],
    );
    return [new AIMessage({ id, content: textOf(message), tool_calls })];
  });
}

/** Converts the result of a call to a message of LangChain. */
export function toToolMessage(result: ToolResultPart, { messages }: GraphPeers): ToolMessage {
  return new messages.ToolMessage({
    id: `${result.tool_call_id}_result`,
    tool_call_id: result.tool_call_id,
    name: result.tool,
    content: partsText(result.content),
    status: result.is_error ? "error" : "success",
  });
}

/** A text alone becomes a string; with pictures, a list of parts. Kit sends the model its own history, not these. */
function contentOf({ content }: Extract<Message, { role: "user" }>) {
  if (content.every((part) => part.type === "text")) return partsText(content);
  return content.map((part) => {
    if (part.type === "text") return { type: "text" as const, text: part.text };
    if (part.type !== "image") return { type: "text" as const, text: `[${part.type}]` };
    const url = part.data.startsWith("https:") ? part.data : `data:${part.media_type};base64,${part.data}`;
    return { type: "image_url" as const, image_url: { url } };
  });
}

/** The messages that a graph received: it can only have omitted these on purpose. */
export class GivenMessages {
  newest: string | undefined;
  readonly #keys = new Set<string>();

  /** Adds the messages that the graph starts with: the history, or the part that it had when it was interrupted. */
  begin(operation: BackendOperation, until: string | undefined): void {
    const messages = operation.history();
    const names = new Set(operation.tools.map(({ name }) => name));
    for (const [index, message] of messages.entries()) {
      const key = keyOf(message);
      const caller = message.role === "tool" ? messages[index - 1] : message;
      const calls = caller?.content.filter((part) => part.type === "tool_call") ?? [];
      const isAnswered =
        calls.length > 0 && !calls.some((part) => part.type === "tool_call" && names.has(part.tool));
      // The graph need not repeat messages that kit has added since.
      if (!isAnswered && !(message.role === "user" && isKits(message))) this.#keys.add(key);
      this.newest = key;
      if (key === until) return;
    }
  }

  addTurn(id: string): void {
    this.#add(id);
  }

  addResult(callId: string): void {
    this.#add(resultsKey(callId));
  }

  has(key: string): boolean {
    return this.#keys.has(key);
  }

  #add(key: string): void {
    this.#keys.add(key);
    this.newest = key;
  }
}

/**
 * Converts a node's model call to a turn request: the current conversation, if the messages equal it; else
 * these messages. Without tools, other messages are asked aside.
 */
export function toTurnRequest(
  asked: { readonly messages: readonly BaseMessage[]; readonly tools: readonly string[] },
  operation: BackendOperation,
  given: GivenMessages,
): TurnRequest | undefined {
  const own = asked.messages.filter((message) => message.getType() === "system").map(textIn);
  const extra = own.filter((text) => text !== "" && text !== operation.system).join("\n\n");
  const newMessages = asked.messages.filter((message) => message.getType() !== "system");
  const history = operation.history();
  const system = extra === "" ? {} : { system: `${operation.system}\n\n${extra}` };
  const isAll =
    asked.tools.length === operation.tools.length &&
    operation.tools.every(({ name }) => asked.tools.includes(name));
  const tools = isAll ? {} : { tools: asked.tools };
  if (isConversation(newMessages, history, given)) {
    const request: TurnRequest = { ...system, ...tools };
    return Object.keys(request).length === 0 ? undefined : request;
  }
  const messages = fromLangChain(newMessages, history);
  return asked.tools.length === 0 ? { ...system, messages, aside: true } : { ...system, ...tools, messages };
}

function isConversation(
  newMessages: readonly BaseMessage[],
  history: readonly BackendMessage[],
  given: GivenMessages,
): boolean {
  const active = new Map(history.map((message) => [keyOf(message), message]));
  const first = Math.min(...history.filter(({ id }) => id !== "message_0").map(({ id }) => positionOf(id)));
  const keys: string[] = [];
  for (const message of newMessages) {
    const key = langChainKey(message);
    if (key === undefined) return false;
    const known = active.get(key);
    // A compaction has summarized the message.
    if (known === undefined && positionOf(key) < first) continue;
    if (known === undefined || !isSame(message, known)) return false;
    if (!(known.role === "user" && isKits(known)) && keys.at(-1) !== key) keys.push(key);
  }
  const keptKeys = history.filter((message) => given.has(keyOf(message))).map(keyOf);
  return keys.length === keptKeys.length && keys.every((key, at) => key === keptKeys[at]);
}

/** A node may have changed the text of a message. */
function isSame(message: BaseMessage, known: BackendMessage): boolean {
  if (known.role === "user")
    return known.content.some(({ type }) => type !== "text") || textIn(message) === textOf(known);
  if (known.role === "assistant") return textIn(message).replace("\u200b", "") === textOf(known);
  const id = (message as ToolMessage).tool_call_id;
  const result = known.content.find(({ tool_call_id }) => tool_call_id === id);
  return result !== undefined && textIn(message) === partsText(result.content);
}

function fromLangChain(
  newMessages: readonly BaseMessage[],
  history: readonly BackendMessage[],
): readonly Message[] {
  const active = new Map(history.map((message) => [keyOf(message), message]));
  const messages: Message[] = [];
  for (const message of newMessages) {
    const known = active.get(langChainKey(message) ?? "");
    if (known !== undefined && known.role !== "tool" && isSame(message, known)) messages.push(known);
    else if (message.getType() !== "tool") messages.push(toMessage(message));
    else {
      const last = messages.at(-1);
      const result = toResult(message as ToolMessage);
      if (last?.role === "tool")
        messages[messages.length - 1] = { ...last, content: [...last.content, result] };
      else messages.push({ role: "tool", content: [result], timestamp: "" });
    }
  }
  return messages;
}

function toResult(message: ToolMessage): ToolResultPart {
  return {
    type: "tool_result",
    tool_call_id: message.tool_call_id,
    tool: message.name ?? "tool",
    content: [{ type: "text", text: textIn(message) }],
    is_error: message.status === "error",
  };
}

function toMessage(message: BaseMessage): Message {
  const text = { type: "text", text: textIn(message).replace("\u200b", "") } as const;
  if (message.getType() !== "ai") return { role: "user", content: [text], timestamp: "" };
  const calls = ((message as AIMessage).tool_calls ?? []).map(
    ({ id = "call", name, args }) => ({ type: "tool_call", tool_call_id: id, tool: name, args }) as const,
  );
  const content = text.text === "" ? calls : [text, ...calls];
  return { role: "assistant", content, timestamp: "", model: "", usage: noUsage, finish_reason: "stop" };
}

/** The text of a message of LangChain. */
export function textIn({ content }: BaseMessage): string {
  if (typeof content === "string") return content;
  return content.map((part) => ("text" in part && typeof part.text === "string" ? part.text : "")).join("");
}

/** Messages of kit to the model, which the graph does not need. */
function isKits({ source }: Extract<Message, { role: "user" }>): boolean {
  return source !== undefined && source !== "skill";
}

function keyOf(message: BackendMessage): string {
  return message.role === "tool" ? resultsKey(message.content[0]?.tool_call_id ?? "") : message.id;
}

function resultsKey(callId: string): string {
  return `results_${callId.split("_")[1]}`;
}

function langChainKey(message: BaseMessage): string | undefined {
  if (message.getType() === "tool") {
    const id = (message as ToolMessage).tool_call_id;
    return /^call_\d+_\d+$/.test(id) ? resultsKey(id) : undefined;
  }
  return message.id !== undefined && /^message_\d+$/.test(message.id) ? message.id : undefined;
}

function positionOf(key: string): number {
  return Number(key.split("_")[1]);
}
