import type { Attributes } from "@opentelemetry/api";
import type { FinishReason, Message, ToolCallPart } from "../protocol/message.ts";
import type { TurnContent, TurnTool } from "../protocol/tracing.ts";
import { finishReasonOf, names, others } from "./conventions.ts";

/** The longest attribute, which most receivers accept. */
const maxChars = 128 * 1024;
const maxTextChars = 16 * 1024;

/** The input of a model in the form of the conventions: JSON, one attribute each. */
export function inputAttributes({ system, messages }: TurnContent, openInference: boolean): Attributes {
  const input = toJson(messages.map(toInputMessage));
  return {
    ...(system === "" ? {} : { [names.systemInstructions]: JSON.stringify([textPart(system)]) }),
    [names.inputMessages]: input,
    ...(openInference ? { [others.input]: input } : {}),
  };
}

/** The tools that a model may call. Those that do not fit are left out. */
export function toolDefinitions(tools: readonly TurnTool[]): Attributes {
  if (tools.length === 0) return {};
  const definitions = tools.map(({ name, description, inputSchema: parameters }) =>
    JSON.stringify({ type: "function", name, description, parameters }),
  );
  let length = 0;
  const kept = definitions.filter((json) => {
    length += json.length + 1;
    return length <= maxChars;
  });
  return { [names.toolDefinitions]: `[${kept.join(",")}]` };
}

export type AnswerCall = Pick<ToolCallPart, "tool_call_id" | "tool" | "args">;

/** The output of a model. */
export class Answer {
  calls: readonly AnswerCall[] = [];
  #text = "";
  #reasoning = "";

  add(type: "text_delta" | "reasoning_delta", text: string): void {
    if (type === "text_delta") this.#text += text;
    else this.#reasoning += text;
  }

  toAttributes(finishReason: FinishReason | undefined, openInference: boolean): Attributes {
    const parts = [
      ...(this.#reasoning === "" ? [] : [{ type: "reasoning", content: cut(this.#reasoning) }]),
      ...(this.#text === "" ? [] : [textPart(this.#text)]),
      ...this.calls.map(callPart),
    ];
    if (parts.length === 0) return {};
    const message = {
      role: "assistant",
      parts,
      finish_reason: finishReason === undefined ? undefined : finishReasonOf(finishReason),
    };
    return {
      [names.outputMessages]: JSON.stringify([message]),
      ...(openInference ? { [others.output]: cut(this.#text) } : {}),
    };
  }
}

export function argumentsOf(args: unknown, openInference: boolean): Attributes {
  const text = cut(JSON.stringify(args) ?? "null");
  return { [names.toolArguments]: text, ...(openInference ? { [others.input]: text } : {}) };
}

export function resultOf(result: string, openInference: boolean): Attributes {
  const text = cut(result);
  return { [names.toolResult]: text, ...(openInference ? { [others.output]: text } : {}) };
}

interface MessageParts {
  readonly role: string;
  readonly parts: readonly unknown[];
}

function toInputMessage({ role, content }: Message): MessageParts {
  const parts = content.map((part): unknown => {
    switch (part.type) {
      case "text":
        return textPart(part.text);
      case "reasoning":
        return { type: "reasoning", content: cut(part.text) };
      case "tool_call":
        return callPart(part);
      case "tool_result": {
        const items = part.content.map((item) =>
          item.type === "text" ? item.text : `[image ${item.media_type}]`,
        );
        return { type: "tool_call_response", id: part.tool_call_id, response: cut(items.join("")) };
      }
      default:
        return { type: part.type };
    }
  });
  return { role, parts };
}

function callPart({ tool_call_id: id, tool: name, args }: AnswerCall): unknown {
  return { type: "tool_call", id, name, arguments: cutValue(args) };
}

/** The newest messages that fit. */
function toJson(messages: readonly MessageParts[]): string {
  const kept: string[] = [];
  let length = 0;
  for (const message of messages.toReversed()) {
    const json = JSON.stringify(message);
    length += json.length + 1;
    if (length > maxChars && kept.length > 0) {
      const left = messages.length - kept.length;
      kept.unshift(
        JSON.stringify({ role: "system", parts: [textPart(`[${left} earlier messages are left out]`)] }),
      );
      break;
    }
    kept.unshift(json);
  }
  return `[${kept.join(",")}]`;
}

function textPart(text: string): { readonly type: "text"; readonly content: string } {
  return { type: "text", content: cut(text) };
}

function cutValue(value: unknown): unknown {
  const json = JSON.stringify(value) ?? "null";
  return json.length <= maxTextChars ? value : cut(json);
}

function cut(text: string): string {
  if (text.length <= maxTextChars) return text;
  return `${text.slice(0, maxTextChars).toWellFormed()}[… ${text.length - maxTextChars} characters are left out]`;
}
