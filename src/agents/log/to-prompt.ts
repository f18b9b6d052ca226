import type {
  LanguageModelV4Message,
  LanguageModelV4Prompt,
  SharedV4ProviderOptions,
} from "@ai-sdk/provider";
import { isoTime } from "../../base/clock.ts";
import { isRecord } from "../../base/record.ts";
import type { FilePart, ImagePart, Message, TextPart, ToolResultPart } from "../../protocol/message.ts";
import type { SessionEntry } from "../../protocol/session-entry.ts";
import { maskValue, type SecretMask } from "../secrets.ts";

type Prompt<Role> = Extract<LanguageModelV4Message, { role: Role }>;

/** Converts a stored message to a message of the AI SDK's model interface (specification v4). */
export function toPromptMessage(message: Message): LanguageModelV4Message {
  switch (message.role) {
    case "user":
      return { role: "user", content: mapPacked(message.content, toUserPart) };
    case "tool":
      return { role: "tool", content: mapPacked(message.content, toResultPart) };
    case "assistant":
      return { role: "assistant", content: mapPacked(message.content.filter(hasContent), toAssistantPart) };
  }
}

function toUserPart(part: TextPart | ImagePart | FilePart): Prompt<"user">["content"][number] {
  if (part.type === "text") return { type: "text", text: part.text };
  const file = { type: "file", mediaType: part.media_type, data: toFileData(part) } as const;
  return part.type === "file" && part.filename !== undefined ? { ...file, filename: part.filename } : file;
}

function toFileData(part: ImagePart | FilePart): { type: "url"; url: URL } | { type: "data"; data: string } {
  return part.data.startsWith("https:")
    ? { type: "url", url: new URL(part.data) }
    : { type: "data", data: part.data };
}

function toResultPart(part: ToolResultPart): Prompt<"tool">["content"][number] {
  return {
    type: "tool-result",
    toolCallId: part.tool_call_id,
    toolName: toolName(part.tool),
    output: toOutput(part),
  };
}

type AssistantPart = Extract<Message, { role: "assistant" }>["content"][number];

/** Providers refuse texts of white space alone, but need the parts that they have signed. */
function hasContent(part: AssistantPart): boolean {
  return part.type === "tool_call" || part.provider !== undefined || part.text.trim() !== "";
}

function toAssistantPart(part: AssistantPart): Prompt<"assistant">["content"][number] {
  const providerOptions = part.provider as SharedV4ProviderOptions | undefined;
  if (part.type !== "tool_call") {
    const { type, text } = part;
    return providerOptions === undefined ? { type, text } : { type, text, providerOptions };
  }
  const call = {
    type: "tool-call",
    toolCallId: part.tool_call_id,
    toolName: toolName(part.tool),
    // Providers accept only an object; the result tells the model what was wrong.
    input: isRecord(part.args) ? part.args : { [part.invalid ? "invalid_json" : "value"]: part.args },
  } as const;
  return providerOptions === undefined ? call : { ...call, providerOptions };
}

/**
 * Does what `map` does. V8's optimized `map` makes arrays of another kind ("holey") than its builtin ("packed"), so that every
 * function that reads them is compiled again once the function that makes them is optimized. `slice` makes packed arrays, always.
 */
export function mapPacked<Item, Value>(items: readonly Item[], to: (item: Item) => Value): Value[] {
  const values: (Item | Value)[] = items.slice();
  let at = 0;
  for (const item of items) {
    values[at] = to(item);
    at += 1;
  }
  return values as Value[];
}

const namePattern = /^[a-zA-Z0-9_-]{1,64}$/;

/** Replaces characters that providers refuse: a model may call a name that no tool can have. */
function toolName(called: string): string {
  if (namePattern.test(called)) return called;
  return called.replace(/[^a-zA-Z0-9_-]/g, "_").slice(0, 64) || "_";
}

function toOutput(
  part: ToolResultPart,
): Prompt<"tool">["content"][number] extends infer Part
  ? Part extends { output: infer Output }
    ? Output
    : never
  : never {
  const only = part.content[0];
  if (part.content.length === 1 && only?.type === "text") {
    return { type: part.is_error ? "error-text" : "text", value: only.text };
  }
  return {
    type: "content",
    value: part.content.map((item) =>
      item.type === "text"
        ? { type: "text", text: item.text }
        : { type: "file", mediaType: item.media_type, data: toFileData(item) },
    ),
  };
}

/** The difference between a prompt that a backend or a hook composed and the session's prompt: the part between equal ends. */
export interface ComposedPrompt {
  readonly turn_id: string;
  /** The number of equal messages at the beginning, with the system prompt, and at the end. */
  readonly head: number;
  readonly tail: number;
  readonly messages: readonly unknown[];
  /** Set if the messages are too large to store. */
  readonly omitted?: true;
}

/** The note with the prompt of a turn that a backend or a hook composed: a `ComposedPrompt`. */
export const composedNote = "composed_prompt";

/** The limit of one such note, in characters of JSON. */
const maxComposed = 1_048_576;

/** The note about a prompt that differs from the session's; `undefined` if both are equal. */
export function composedEntry(
  turn: {
    readonly id: string;
    readonly operationId: string;
    readonly now: number;
    readonly mask: SecretMask | undefined;
  },
  own: LanguageModelV4Prompt,
  sent: LanguageModelV4Prompt,
): SessionEntry | undefined {
  const before = own.map(asSent);
  const after = sent.map(asSent);
  let head = 0;
  while (head < before.length && head < after.length && before[head] === after[head]) head += 1;
  let tail = 0;
  const most = Math.min(before.length, after.length) - head;
  while (tail < most && before.at(-1 - tail) === after.at(-1 - tail)) tail += 1;
  if (head + tail === before.length && before.length === after.length) return undefined;
  const texts = after.slice(head, after.length - tail);
  const size = texts.reduce((sum, text) => sum + text.length, 0);
  const messages: readonly unknown[] =
    size > maxComposed ? [] : texts.map((text): unknown => JSON.parse(text));
  const value: ComposedPrompt = {
    turn_id: turn.id,
    head,
    tail,
    messages: turn.mask === undefined ? messages : maskValue(messages, turn.mask),
    ...(size > maxComposed ? { omitted: true } : {}),
  };
  return {
    version: 1,
    type: "note",
    name: composedNote,
    value,
    timestamp: isoTime(turn.now),
    operation_id: turn.operationId,
  };
}

/** A message without the marks for its provider's cache, as JSON. */
export function asSent(message: LanguageModelV4Message): string {
  return JSON.stringify(message, (key, value: unknown) => (key === "providerOptions" ? undefined : value));
}
