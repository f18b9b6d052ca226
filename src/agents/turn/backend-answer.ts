import type { AgentBackend } from "../../backends/contract.ts";
import { isoTime } from "../../base/clock.ts";
import { KitError } from "../../base/kit-error.ts";
import { noUsage } from "../../protocol/add-usage.ts";
import type { AssistantMessage, Message } from "../../protocol/message.ts";
import { textOf } from "../../protocol/message.ts";
import type { TurnLoop } from "./turn-loop.ts";

/** A message that the backend says, and not the model. */
export function ownMessage(
  { clock, modelName }: Pick<TurnLoop, "clock" | "modelName">,
  content: AssistantMessage["content"],
): AssistantMessage {
  return {
    role: "assistant",
    content,
    timestamp: isoTime(clock.now()),
    model: modelName,
    usage: noUsage,
    finish_reason: content.some(({ type }) => type === "tool_call") ? "tool-calls" : "stop",
    source: "backend",
  };
}

/**
 * The answer of an operation whose backend has ended: the newest one of the model where that is the last message, else a
 * message with the backend's own words, or with those of the model where more came behind them.
 */
export function concludingAnswer(
  loop: TurnLoop,
  said: { readonly words: string | undefined; readonly newest: AssistantMessage | undefined },
): { readonly message: AssistantMessage | undefined; readonly isNew: boolean } {
  const { messages } = loop.state;
  const last = messages.at(-1);
  const newest = said.newest ?? newestAnswer(messages);
  const { words = newest === undefined ? undefined : textOf(newest) } = said;
  if (words === undefined) return { message: undefined, isNew: false };
  if (last?.role === "assistant" && (said.words === undefined || textOf(last) === words))
    return { message: last, isNew: false };
  return { message: ownMessage(loop, [{ type: "text", text: words }]), isNew: true };
}

/** The answer that the log has already, of an operation which is gone on with at its very end. */
function newestAnswer(messages: readonly Message[]): AssistantMessage | undefined {
  for (let index = messages.length - 1; index >= 0; index -= 1) {
    const message = messages[index];
    if (message?.role === "assistant") return message;
    if (message?.role === "user" && message.source !== "guidelines" && message.source !== "resume")
      return undefined;
  }
  return undefined;
}

export function noAnswer({ name }: AgentBackend): KitError {
  return new KitError({
    code: "internal_error",
    message: `The backend "${name}" ended without an answer.`,
    hint: "It has to ask the model with `turn`, or to give words of its own with `answer`.",
  });
}
