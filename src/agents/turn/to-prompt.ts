import type { LanguageModelV4Message, SharedV4ProviderOptions } from "@ai-sdk/provider";
import type { ImagePart, Message, ProviderData, TextPart, ToolResultPart } from "../../protocol/message.ts";

type Prompt<Role> = Extract<LanguageModelV4Message, { role: Role }>;

/** A stored message as the model interface of the AI SDK takes it (specification v4). */
export function toPromptMessage(message: Message): LanguageModelV4Message {
  switch (message.role) {
    case "user":
      return { role: "user", content: message.content.map(toUserPart) };
    case "tool":
      return {
        role: "tool",
        content: message.content.map((part) => ({
          type: "tool-result",
          toolCallId: part.tool_call_id,
          toolName: part.tool,
          output: toOutput(part),
        })),
      };
    case "assistant":
      return { role: "assistant", content: message.content.map(toAssistantPart) };
  }
}

function toUserPart(part: TextPart | ImagePart): Prompt<"user">["content"][number] {
  if (part.type === "text") return { type: "text", text: part.text };
  return { type: "file", mediaType: part.media_type, data: toFileData(part) };
}

function toFileData(part: ImagePart): { type: "url"; url: URL } | { type: "data"; data: string } {
  return part.data.startsWith("https:")
    ? { type: "url", url: new URL(part.data) }
    : { type: "data", data: part.data };
}

function toAssistantPart(
  part: Extract<Message, { role: "assistant" }>["content"][number],
): Prompt<"assistant">["content"][number] {
  switch (part.type) {
    case "text":
    case "reasoning":
      return { type: part.type, text: part.text, ...options(part.provider) };
    case "tool_call":
      return {
        type: "tool-call",
        toolCallId: part.tool_call_id,
        toolName: part.tool,
        // Providers take an object only; the result beside it tells the model that its JSON was broken.
        input: part.invalid ? { invalid_json: part.args } : part.args,
        ...options(part.provider),
      };
  }
}

function options(provider: ProviderData | undefined): { providerOptions?: SharedV4ProviderOptions } {
  return provider === undefined ? {} : { providerOptions: provider as SharedV4ProviderOptions };
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
