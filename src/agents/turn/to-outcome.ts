import type { ImagePart, TextPart } from "../../protocol/message.ts";
import { checkedImagePart } from "../image-part.ts";
import type { ToolOutput } from "../tool.ts";
import type { Outcome } from "./outcome.ts";

/**
 * What a tool gave, as parts that every later prompt can send. A tool in plain JavaScript may give what its
 * type forbids: that is told as JSON. Throws `invalid_request` for an image that is none.
 */
export function toOutcome(output: ToolOutput): Outcome {
  if (typeof output === "string") return { content: output };
  const content: unknown = typeof output === "object" && output !== null ? output.content : undefined;
  if (typeof content === "string") return output;
  if (Array.isArray(content) && content.every(isPart)) {
    return {
      ...output,
      content: content.map((part) => (part.type === "image" ? checkedImagePart(part) : part)),
    };
  }
  return { content: JSON.stringify(output) ?? "" };
}

function isPart(part: unknown): part is TextPart | ImagePart {
  if (typeof part !== "object" || part === null || !("type" in part)) return false;
  return part.type === "image" || (part.type === "text" && "text" in part && typeof part.text === "string");
}
