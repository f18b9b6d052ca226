import type { LanguageModelV4Prompt } from "@ai-sdk/provider";

/** A tool call since the question was asked, with what it returned. */
export interface Lookup {
  readonly tool: string;
  readonly input: Readonly<Record<string, unknown>>;
  readonly result: string;
  readonly failed: boolean;
}

/** The input of the guide: the newest question, and the lookups for it. */
export interface Conversation {
  readonly question: string;
  readonly lookups: readonly Lookup[];
  /** Whether the question asks for JSON of a given shape, which the guide cannot make. */
  readonly wantsResult: boolean;
}

const guidelinesIntro = "Guidelines of this repository for the files you just touched";

export function readConversation(prompt: LanguageModelV4Prompt): Conversation {
  let from = prompt.length - 1;
  while (from > 0 && !isQuestion(prompt[from])) from -= 1;
  const question = textOf(prompt[from]);
  const inputs = new Map<string, Readonly<Record<string, unknown>>>();
  const lookups: Lookup[] = [];
  for (const message of prompt.slice(from + 1)) {
    if (message.role === "assistant") {
      for (const part of message.content) {
        if (part.type === "tool-call") inputs.set(part.toolCallId, toRecord(part.input));
      }
    }
    if (message.role !== "tool") continue;
    for (const part of message.content) {
      if (part.type !== "tool-result") continue;
      const { output } = part;
      lookups.push({
        tool: part.toolName,
        input: inputs.get(part.toolCallId) ?? {},
        result:
          "value" in output
            ? typeof output.value === "string"
              ? output.value
              : JSON.stringify(output.value)
            : "",
        failed:
          output.type === "error-text" || output.type === "error-json" || output.type === "execution-denied",
      });
    }
  }
  return { question, lookups, wantsResult: question.includes("give your final result as JSON") };
}

function isQuestion(message: LanguageModelV4Prompt[number] | undefined): boolean {
  return message?.role === "user" && !textOf(message).startsWith(guidelinesIntro);
}

function textOf(message: LanguageModelV4Prompt[number] | undefined): string {
  if (message === undefined || message.role === "system" || message.role === "tool") return "";
  return message.content.map((part) => (part.type === "text" ? part.text : "")).join("");
}

function toRecord(value: unknown): Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null ? (value as Record<string, unknown>) : {};
}
