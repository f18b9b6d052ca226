import type { PromptMessage } from "../../protocol/trace.ts";

/** A message in the form of the AI SDK, read back from JSON or just made. */
export interface PromptForm {
  readonly role: PromptMessage["role"];
  readonly content: string | readonly Readonly<Record<string, unknown>>[];
}

/** A message as the routes give it. */
export function toPublicMessage({ role, content }: PromptForm): PromptMessage {
  const parts = typeof content === "string" ? [{ type: "text", text: content }] : content;
  return { role, content: parts.map(toPublicPart) };
}

type PublicPart = PromptMessage["content"][number];

function toPublicPart(part: Readonly<Record<string, unknown>>): PublicPart {
  switch (part.type) {
    case "text":
    case "reasoning":
      return { type: part.type, text: part.text };
    case "tool-call":
      return { type: "tool_call", tool_call_id: part.toolCallId, tool: part.toolName, args: part.input };
    case "tool-result": {
      const output = part.output as { readonly type: string; readonly value?: unknown };
      const { value } = output;
      return {
        type: "tool_result",
        tool_call_id: part.toolCallId,
        tool: part.toolName,
        is_error: output.type.startsWith("error"),
        content: Array.isArray(value)
          ? value.map((item) => toPublicPart(item as Readonly<Record<string, unknown>>))
          : [{ type: "text", text: typeof value === "string" ? value : JSON.stringify(value) }],
      };
    }
    case "file": {
      const { data: source, mediaType: media_type, filename } = part;
      const { url, data } = source as { readonly url?: URL | string; readonly data?: unknown };
      return {
        type: String(media_type).startsWith("image/") ? "image" : "file",
        media_type,
        ...(filename === undefined ? {} : { filename }),
        data: url === undefined ? data : String(url),
      };
    }
    default:
      return { ...part, type: String(part.type) };
  }
}
