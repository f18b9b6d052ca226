import type { ToolCallPart } from "../protocol/message.ts";
import type { BackendOperation } from "./contract.ts";

/** The text of a message's parts; other parts by their type. */
export function partsText(parts: readonly { readonly type: string; readonly text?: string }[]): string {
  return parts.map((part) => (part.type === "text" ? (part.text ?? "") : `[${part.type}]`)).join("");
}

/** The calls since the user's newest message that ran without an error, oldest first: handoffs among them took place. */
export function succeededCalls(operation: BackendOperation): readonly ToolCallPart[] {
  const history = operation.history();
  const begin = history.findLastIndex(
    ({ role, ...message }) => role === "user" && (!("source" in message) || message.source === "skill"),
  );
  const since = history.slice(begin + 1);
  const succeeded = new Set(
    since.flatMap((message) =>
      message.role === "tool"
        ? message.content.flatMap(({ tool_call_id, is_error }) => (is_error ? [] : [tool_call_id]))
        : [],
    ),
  );
  return since.flatMap((message) =>
    message.role === "assistant"
      ? message.content.filter(
          (part): part is ToolCallPart => part.type === "tool_call" && succeeded.has(part.tool_call_id),
        )
      : [],
  );
}
