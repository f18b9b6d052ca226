import type {
  LanguageModelV4,
  LanguageModelV4CallOptions,
  LanguageModelV4Content,
  LanguageModelV4Prompt,
  LanguageModelV4StreamPart,
} from "@ai-sdk/provider";
import { KitError } from "../../base/kit-error.ts";
import { quoteImpact, quoteRules, quoteSearch } from "./quote-lookup.ts";

/**
 * The built-in model `offline/guide`: needs no key and no network. It looks things up with its tools for specs,
 * guidelines and files, and quotes their results. It does not reason, and its answers state that.
 *
 * The same conversation gives the same answer.
 */
export function createOfflineGuide(): LanguageModelV4 {
  return {
    specificationVersion: "v4",
    provider: "offline",
    modelId: "guide",
    supportedUrls: {},
    async doStream(options) {
      const parts = answer(options);
      return {
        stream: new ReadableStream<LanguageModelV4StreamPart>({
          start(controller) {
            for (const part of parts) controller.enqueue(part);
            controller.close();
          },
        }),
      };
    },
    async doGenerate(options) {
      const content = answer(options).flatMap((part): LanguageModelV4Content[] => {
        if (part.type === "text-delta") return [{ type: "text", text: part.delta }];
        return part.type === "tool-call" ? [part] : [];
      });
      const calls = content.some((part) => part.type === "tool-call");
      return { content, finishReason: finish(calls), usage: usageOf(options, content), warnings: [] };
    },
  };
}

function answer(options: LanguageModelV4CallOptions): LanguageModelV4StreamPart[] {
  const conversation = readConversation(options.prompt);
  if (conversation.expectsResult) throw noTypedResults();
  const calls = planCalls(conversation, new Set((options.tools ?? []).map((tool) => tool.name)));
  const parts: LanguageModelV4StreamPart[] = [{ type: "stream-start", warnings: [] }];
  if (calls.length > 0) {
    for (const call of calls) {
      parts.push({
        type: "tool-call",
        toolCallId: call.id,
        toolName: call.tool,
        input: JSON.stringify(call.input),
      });
    }
  } else {
    // Paragraph by paragraph, so that a reader of the stream sees it grow.
    parts.push({ type: "text-start", id: "answer" });
    for (const delta of composeAnswer(conversation).split(/(?<=\n\n)/))
      parts.push({ type: "text-delta", id: "answer", delta });
    parts.push({ type: "text-end", id: "answer" });
  }
  parts.push({ type: "finish", finishReason: finish(calls.length > 0), usage: usageOf(options, parts) });
  return parts;
}

// The guide says so at once: four answers that do not fit would not tell the caller why.
function noTypedResults(): KitError {
  return new KitError({
    code: "unavailable",
    message: "offline/guide only quotes: it cannot make a typed result.",
    hint: "Set the key of a provider, such as ANTHROPIC_API_KEY, or name another model.",
  });
}

function finish(calls: boolean): { unified: "tool-calls" | "stop"; raw: undefined } {
  return { unified: calls ? "tool-calls" : "stop", raw: undefined };
}

/** Counts a quarter of the characters as tokens: nothing is billed, but budgets and limits go on working. */
function usageOf(
  options: LanguageModelV4CallOptions,
  output: unknown,
): Extract<LanguageModelV4StreamPart, { type: "finish" }>["usage"] {
  return {
    inputTokens: {
      total: Math.ceil(JSON.stringify(options.prompt).length / 4),
      noCache: undefined,
      cacheRead: undefined,
      cacheWrite: undefined,
    },
    outputTokens: {
      total: Math.ceil(JSON.stringify(output).length / 4),
      text: undefined,
      reasoning: undefined,
    },
  };
}

const notice =
  "I am offline/guide: I look things up and quote them. I do not reason; set a provider's key for a model that does.";

/** The longest quote of one lookup, in characters. */
const maxQuote = 6_000;

/** The answer: what was found, quoted under the question it answers, and what the guide is. */
function composeAnswer(conversation: Conversation): string {
  const sections = conversation.lookups
    .filter((lookup) => !lookup.failed && !isEmptyResult(lookup.result))
    .map(toSection);
  const misses = conversation.lookups
    .filter((lookup) => lookup.failed || isEmptyResult(lookup.result))
    .map(toMiss);
  const parts = [...sections];
  if (misses.length > 0) parts.push(misses.join("\n"));
  if (parts.length === 0) {
    parts.push(
      "I found no file and no word in your question that I could look up. Name a file, such as src/app.ts, or words of a requirement.",
    );
  }
  parts.push(`---\n${notice}`);
  return parts.join("\n\n");
}

function toSection(lookup: Lookup): string {
  const answer = toAnswer(lookup);
  if (answer !== undefined) return answer;
  const text = lookup.result.length > maxQuote ? `${lookup.result.slice(0, maxQuote)}\n[…]` : lookup.result;
  return `## ${heading(lookup)}\n\n${text}`;
}

/** The answer in a person's words; undefined for a result of another form, such as one of a tool of the project. */
function toAnswer({ tool, input, result }: Lookup): string | undefined {
  if (tool === "guidelines_for") return quoteRules(String(input.file), result);
  if (tool === "spec_impact") return quoteImpact(listOf(input.files), result);
  if (tool === "spec_search") return quoteSearch(String(input.q), result);
  return undefined;
}

function heading(lookup: Lookup): string {
  switch (lookup.tool) {
    case "guidelines_for":
      return `Guidelines that apply to ${String(lookup.input.file)}`;
    case "spec_impact":
      return `What a change of ${listOf(lookup.input.files)} affects`;
    case "spec_search":
      return `Specs about "${String(lookup.input.q)}"`;
    case "grep":
      return `Lines with "${String(lookup.input.pattern)}"`;
    case "read":
      return String(lookup.input.path);
    default:
      return lookup.tool;
  }
}

function toMiss(lookup: Lookup): string {
  return `${heading(lookup)}: ${lookup.failed ? lookup.result : "nothing found"}.`.replace(/\.\.$/, ".");
}

function listOf(value: unknown): string {
  return Array.isArray(value) ? value.map(String).join(", ") : String(value);
}

interface PlannedCall {
  readonly id: string;
  readonly tool: string;
  readonly input: Readonly<Record<string, unknown>>;
}

/** Looked up for each question at most: files, and searches. */
const maxFiles = 3;

// A path: segments with a slash between them, or a name with a short extension.
const pathPattern =
  /(?<![\w/.@-])(?:[\w@.-]+\/)+[\w@.-]*\w|(?<![\w/.@-])[\w-]+\.(?:[cm]?[jt]sx?|py|rs|go|java|kt|rb|php|cs|cpp|h|sql|md|mdc|json|ya?ml|toml|css|html|vue|svelte|sh)(?![\w])/g;

const stopWords = new Set(
  "a about affect affected after all an and any apply applies are as at be before by can change changes could did do does each file files find for from give guidelines had has have hello here hey how i if in into is it its kit list me my no not of on or our please rule rules say says should show so spec specs tell test tests that the their them then there these they this to us was we were what when where which who why will with would you your".split(
    " ",
  ),
);

/**
 * The lookups that the question still needs, none when all were made. Paths in the question are asked
 * for their guidelines and for what a change of them affects; words are searched in the specs.
 */
function planCalls(conversation: Conversation, tools: ReadonlySet<string>): readonly PlannedCall[] {
  const { question, lookups } = conversation;
  if (lookups.length > 0) return followUps(conversation, tools);
  const calls: { tool: string; input: Record<string, unknown> }[] = [];
  const files = pathsIn(question);
  const words = wordsIn(question, files);
  const contentQuestion = /\b(read|show|open|print|content|contents|look at|what does|explain)\b/i.test(
    question,
  );
  for (const file of files) {
    calls.push({ tool: "guidelines_for", input: { file } });
    if (contentQuestion) calls.push({ tool: "read", input: { path: file, limit: 40 } });
  }
  if (files.length > 0) calls.push({ tool: "spec_impact", input: { files } });
  else if (words.length > 0) calls.push({ tool: "spec_search", input: { q: words.join(" ") } });
  return calls
    .filter((call) => tools.has(call.tool))
    .map((call, index) => ({ id: `look_${index + 1}`, ...call }));
}

/**
 * When a search of all words found nothing, each word is tried alone, longest first, and the longest is
 * looked for in the files.
 */
function followUps({ question, lookups }: Conversation, tools: ReadonlySet<string>): readonly PlannedCall[] {
  const [search] = lookups;
  if (lookups.length !== 1 || search?.tool !== "spec_search" || !isEmptyResult(search.result)) return [];
  const words = wordsIn(question, [])
    .sort((left, right) => right.length - left.length)
    .slice(0, 3);
  const calls: { tool: string; input: Record<string, unknown> }[] =
    words.length < 2 ? [] : words.map((q) => ({ tool: "spec_search", input: { q } }));
  if (words[0] !== undefined) calls.push({ tool: "grep", input: { pattern: words[0], ignore_case: true } });
  return calls
    .filter((call) => tools.has(call.tool))
    .map((call, index) => ({ id: `look_again_${index + 1}`, ...call }));
}

/** Whether a tool says that it found nothing: an empty text, "No line matches.", "0 spec blocks." */
function isEmptyResult(result: string): boolean {
  return /^(no|nothing|none|0)\b|^$/i.test(result.trim());
}

export function pathsIn(text: string): string[] {
  const found = new Set<string>();
  for (const match of text.slice(0, 20_000).matchAll(pathPattern)) {
    // A skill names the folder of its files: that is not a question about them.
    const isAddress = text.slice(Math.max(0, match.index - 8), match.index).includes("://");
    if (!isAddress && !match[0].startsWith(".agents/skills/")) found.add(match[0]);
    if (found.size === maxFiles) break;
  }
  return [...found];
}

function wordsIn(text: string, files: readonly string[]): string[] {
  let rest = text.slice(0, 2_000);
  for (const file of files) rest = rest.replaceAll(file, " ");
  const words = rest.toLowerCase().match(/[\p{L}\p{N}][\p{L}\p{N}_-]*/gu) ?? [];
  return [...new Set(words)].filter((word) => word.length > 2 && !stopWords.has(word)).slice(0, 6);
}

/** A tool call since the question was asked, with what it returned. */
interface Lookup {
  readonly tool: string;
  readonly input: Readonly<Record<string, unknown>>;
  readonly result: string;
  readonly failed: boolean;
}

/** The input of the guide: the newest question, and the lookups for it. */
interface Conversation {
  readonly question: string;
  readonly lookups: readonly Lookup[];
  /** Whether the question asks for JSON of a given shape, which the guide cannot make. */
  readonly expectsResult: boolean;
}

const guidelinesIntro = "Guidelines of this repository for the files you just touched";

function readConversation(prompt: LanguageModelV4Prompt): Conversation {
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
  return { question, lookups, expectsResult: question.includes("give your final result as JSON") };
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
