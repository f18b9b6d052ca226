import type { LanguageModelV4StreamPart } from "@ai-sdk/provider";
import type { ProviderData, ToolCallPart } from "../../protocol/message.ts";

/** A call whose arguments the model writes. */
export type StreamedCall = Pick<ToolCallPart, "tool_call_id" | "tool">;

/** Converts a call of a model's answer. Arguments that are no JSON make it `invalid`, with their text. */
export function toToolCall(
  part: Extract<LanguageModelV4StreamPart, { type: "tool-call" }>,
  tool_call_id: string,
): ToolCallPart {
  const call = {
    type: "tool_call",
    tool_call_id,
    tool: part.toolName,
    ...(part.providerMetadata === undefined ? {} : { provider: part.providerMetadata as ProviderData }),
  } as const;
  try {
    return { ...call, args: part.input.trim() === "" ? {} : parseArguments(part.input) };
  } catch {
    return { ...call, args: part.input.toWellFormed(), invalid: true };
  }
}

const halfCharacter = /\\u[dD][89a-fA-F]/;

/** Parses arguments and repairs half surrogate pairs, which providers refuse. */
function parseArguments(input: string): unknown {
  if (input.isWellFormed() && !halfCharacter.test(input)) return JSON.parse(input);
  return JSON.parse(input, (_key, value: unknown) =>
    typeof value === "string" ? value.toWellFormed() : value,
  );
}
