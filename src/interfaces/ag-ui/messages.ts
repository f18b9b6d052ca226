import { isRecord } from "../../base/record.ts";
import type { AgUiMessage } from "../../protocol/ag-ui.ts";
import type { Message } from "../../protocol/message.ts";
import type { UiPart } from "../../protocol/ui.ts";
import { toCallId } from "../ai-sdk/fold.ts";
import { stringOf, toMessageId, toUserInput, type UserInput } from "../ai-sdk/user-message.ts";

/** Converts a user's message of AG-UI to a prompt. Throws `invalid_request`. */
export function toAgUiInput({ content }: AgUiMessage): UserInput {
  const parts = typeof content === "string" ? [{ type: "text", text: content }] : (content ?? []);
  return toUserInput({ parts: parts.map(toUiPart) });
}

function toUiPart(part: UiPart): UiPart {
  if (part.type === "text") return part;
  // `image`, `audio`, `video` and `document` have a source; `binary` of older versions has its fields itself.
  const { source = part } = part;
  const { mimeType = "", value, data, url, type } = isRecord(source) ? source : {};
  const isData = type === "data" || data !== undefined;
  const text = (field: unknown): string => stringOf(field, "A field of a file");
  const address = isData ? `data:${text(mimeType)};base64,${text(data ?? value)}` : (url ?? value);
  return { type: "file", mediaType: mimeType, url: address, filename: part.filename };
}

/** Converts a stored message to those of AG-UI; `id` is unique in its thread, and `operationId` is that of its operation. The user's have the ids of streams. */
export function toAgUiMessages(
  message: Message,
  { id, operationId }: { readonly id: string; readonly operationId: string },
): readonly object[] {
  if (message.role === "tool")
    return message.content.map(({ tool_call_id, content }) => {
      const toolCallId = toCallId(operationId, tool_call_id);
      const text = content.map((part) => (part.type === "text" ? part.text : "")).join("");
      return { id: `result-${toolCallId}`, role: "tool", toolCallId, content: text };
    });
  // Messages that kit wrote are for the model.
  if (message.source !== undefined) return [];
  const text = message.content.map((part) => (part.type === "text" ? part.text : "")).join("");
  if (message.role === "user") {
    const name = message.client_id ?? message.joined_from;
    return [{ id: name === undefined ? id : toMessageId(name), role: "user", content: text }];
  }
  const toolCalls = message.content.flatMap((part) =>
    part.type === "tool_call"
      ? [
          {
            id: toCallId(operationId, part.tool_call_id),
            type: "function",
            function: { name: part.tool, arguments: JSON.stringify(part.args ?? {}) },
          },
        ]
      : [],
  );
  return [{ id, role: "assistant", content: text, ...(toolCalls.length > 0 && { toolCalls }) }];
}
