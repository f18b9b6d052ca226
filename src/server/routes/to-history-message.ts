import type { Message } from "../../protocol/message.ts";
import type { HistoryMessage } from "../../protocol/prompt.ts";

/** A message as clients see it: what a part holds for its provider alone stays here. */
export function toHistoryMessage({ role, content, timestamp }: Message): HistoryMessage {
  return { role, content: content.map(withoutProvider), timestamp };
}

function withoutProvider(part: Message["content"][number]): HistoryMessage["content"][number] {
  if (part.type === "tool_result") return { ...part, content: part.content.map(withoutProvider) };
  if (!("provider" in part)) return { ...part };
  const { provider: _, ...shown } = part;
  return shown;
}
