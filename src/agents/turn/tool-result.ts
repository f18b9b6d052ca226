import type { ImagePart, TextPart, ToolCallPart, ToolResultPart } from "../../protocol/message.ts";
import type { ReceiptItem } from "../../protocol/receipt.ts";
import { maskValue, type SecretMask } from "../secrets.ts";
import type { ToolLookup } from "../tool.ts";
import { cutParts, defaultMaxResultChars } from "./cut-text.ts";
import { type Outcome, unknownOutcome } from "./outcome.ts";

/** The result of a call as the history has it: without secrets, and cut to the length that the tool allows. */
export function toResult(
  call: ToolCallPart,
  outcome: Outcome,
  options: { readonly tools: ToolLookup; readonly mask?: SecretMask },
): ToolResultPart {
  const limit = options.tools.get(call.tool)?.maxResultChars ?? defaultMaxResultChars;
  const parts: readonly (TextPart | ImagePart)[] =
    typeof outcome.content === "string" ? [{ type: "text", text: outcome.content }] : outcome.content;
  // A cut through a secret would leave a part of it that no mask finds.
  const masked = options.mask === undefined ? parts : maskParts(parts, options.mask);
  const content = cutParts(masked, limit);
  const given = shownIn(content, outcome.shows ?? []);
  const shows = options.mask === undefined ? given : maskValue(given, options.mask);
  return {
    type: "tool_result",
    tool_call_id: call.tool_call_id,
    tool: call.tool,
    content,
    is_error: outcome.isError === true,
    ...(outcome.outcome === undefined ? undefined : { outcome: outcome.outcome }),
    ...(shows.length === 0 ? undefined : { shows }),
  };
}

/** A result for a call that a process was about to run, or was running, when it ended. */
export function outcomeUnknown(call: ToolCallPart): ToolResultPart {
  return { ...notRun(call, unknownOutcome.content), outcome: "unknown" };
}

/** A result for a call that was not run. */
export function notRun(call: ToolCallPart, text: string): ToolResultPart {
  return {
    type: "tool_result",
    tool_call_id: call.tool_call_id,
    tool: call.tool,
    content: [{ type: "text", text }],
    is_error: true,
  };
}

/** The texts of a result, as its event has them. */
export function resultText(result: ToolResultPart): string {
  let text = "";
  for (const part of result.content) text += part.type === "text" ? part.text : `[image ${part.media_type}]`;
  return text;
}

/** What a tool says that its result shows, without what was cut off. */
function shownIn(
  content: readonly (TextPart | ImagePart)[],
  shows: readonly ReceiptItem[],
): readonly ReceiptItem[] {
  const text = content.map((part) => (part.type === "text" ? part.text : "")).join("\n");
  // One item alone is what the result is about.
  return shows.length <= 1
    ? shows
    : shows.filter(({ id, file = id }) => text.includes(id) || text.includes(file));
}

function maskParts(
  parts: readonly (TextPart | ImagePart)[],
  mask: (text: string) => string,
): readonly (TextPart | ImagePart)[] {
  return parts.map((part) => (part.type === "text" ? { ...part, text: mask(part.text) } : part));
}
