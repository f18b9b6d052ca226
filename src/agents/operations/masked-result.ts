import type { ToolResultPart } from "../../protocol/message.ts";

/** A tool's result with secrets taken out of its texts; the same object when there was none. */
export function maskedResult(result: ToolResultPart, mask: (text: string) => string): ToolResultPart {
  let changed = false;
  const content = result.content.map((part) => {
    if (part.type !== "text") return part;
    const text = mask(part.text);
    if (text === part.text) return part;
    changed = true;
    return { ...part, text };
  });
  return changed ? { ...result, content } : result;
}
