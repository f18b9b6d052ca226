import { receiptKinds } from "../../protocol/enums.ts";
import type { ImagePart, TextPart } from "../../protocol/message.ts";
import type { ReceiptItem } from "../../protocol/receipt.ts";
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
  if (typeof content === "string") return withReceipts(output);
  if (Array.isArray(content) && content.every(isPart)) {
    return withReceipts({
      ...output,
      content: content.map((part) => (part.type === "image" ? checkedImagePart(part) : part)),
    });
  }
  return { content: JSON.stringify(output) ?? "" };
}

/** Items of one result; a list that is longer names nothing anybody looks for. */
const maxItems = 200;

/** What a tool in plain JavaScript says that it shows may be anything: what is no receipt is left out. */
function withReceipts(outcome: Outcome): Outcome {
  const { shows, ...rest } = outcome;
  if (shows === undefined) return outcome;
  const given: readonly unknown[] = Array.isArray(shows) ? shows : [];
  const items = given.flatMap((item) => toItem(item) ?? []).slice(0, maxItems);
  return items.length === 0 ? rest : { ...rest, shows: items };
}

function toItem(given: unknown): ReceiptItem | undefined {
  if (typeof given !== "object" || given === null) return undefined;
  const { kind, id, file, line, why, tokens } = given as Readonly<Record<keyof ReceiptItem, unknown>>;
  const known = receiptKinds.find((each) => each === kind);
  if (known === undefined || typeof id !== "string" || typeof why !== "string") return undefined;
  return {
    kind: known,
    id,
    ...(typeof file === "string" ? { file } : {}),
    ...(typeof line === "number" && Number.isSafeInteger(line) && line > 0 ? { line } : {}),
    why,
    tokens: typeof tokens === "number" && tokens >= 0 ? Math.min(Math.ceil(tokens), 1e9) : 0,
  };
}

function isPart(part: unknown): part is TextPart | ImagePart {
  if (typeof part !== "object" || part === null || !("type" in part)) return false;
  return part.type === "image" || (part.type === "text" && "text" in part && typeof part.text === "string");
}
