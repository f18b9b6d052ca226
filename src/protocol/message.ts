import type { FinishReason } from "./enums.ts";
import type { ReceiptItem } from "./receipt.ts";
import type { Usage } from "./usage.ts";

export type { FinishReason } from "./enums.ts";

/** Data that a provider wants to see again with a part (signatures, cache marks); opaque to kit. */
export type ProviderData = Readonly<Record<string, Readonly<Record<string, unknown>>>>;

export interface TextPart {
  readonly type: "text";
  readonly text: string;
  readonly provider?: ProviderData;
}

export interface ReasoningPart {
  readonly type: "reasoning";
  readonly text: string;
  readonly provider?: ProviderData;
}

/** `data` is base64 without a prefix, or an `https:` address. */
export interface ImagePart {
  readonly type: "image";
  readonly media_type: string;
  readonly data: string;
}

/** A document or a recording. `data` is base64 without a prefix, or an `https:` address. */
export interface FilePart {
  readonly type: "file";
  readonly media_type: string;
  readonly data: string;
  readonly filename?: string;
}

export interface ToolCallPart {
  readonly type: "tool_call";
  readonly tool_call_id: string;
  readonly tool: string;
  /** The arguments as parsed JSON, or the raw text where the model's JSON was invalid. */
  readonly args: unknown;
  readonly invalid?: true;
  readonly provider?: ProviderData;
}

export interface ToolResultPart {
  readonly type: "tool_result";
  readonly tool_call_id: string;
  readonly tool: string;
  readonly content: readonly (TextPart | ImagePart)[];
  readonly is_error: boolean;
  /** Set where the call was cut off and its effect is unknown. */
  readonly outcome?: "unknown";
  /** The rules, specs and other knowledge that the result shows the model. */
  readonly shows?: readonly ReceiptItem[];
}

export interface UserMessage {
  readonly role: "user";
  readonly content: readonly (TextPart | ImagePart | FilePart)[];
  readonly timestamp: string;
  /** Set where kit itself speaks: guidelines, changed instructions, a summary, a repair request, a request to go on. */
  readonly source?: "guidelines" | "instructions" | "summary" | "repair" | "resume" | "skill";
  /** The rules and other knowledge that it shows the model. */
  readonly shows?: readonly ReceiptItem[];
}

export interface AssistantMessage {
  readonly role: "assistant";
  readonly content: readonly (TextPart | ReasoningPart | ToolCallPart)[];
  readonly timestamp: string;
  readonly model: string;
  readonly usage: Usage;
  readonly finish_reason: FinishReason;
  /** Set where a backend speaks, and not the model. */
  readonly source?: "backend";
}

export interface ToolMessage {
  readonly role: "tool";
  readonly content: readonly ToolResultPart[];
  readonly timestamp: string;
}

export type Message = UserMessage | AssistantMessage | ToolMessage;

/** The text of a message, its text parts joined. */
export function textOf(message: Message): string {
  let text = "";
  for (const part of message.content) if (part.type === "text") text += part.text;
  return text;
}
