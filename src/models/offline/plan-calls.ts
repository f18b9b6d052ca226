import type { Conversation } from "./read-conversation.ts";

export interface PlannedCall {
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
export function planCalls(conversation: Conversation, tools: ReadonlySet<string>): readonly PlannedCall[] {
  const { question, lookups } = conversation;
  if (lookups.length > 0) return followUps(conversation, tools);
  const calls: { tool: string; input: Record<string, unknown> }[] = [];
  const files = pathsIn(question);
  const words = wordsIn(question, files);
  const asksWhatItSays = /\b(read|show|open|print|content|contents|look at|what does|explain)\b/i.test(
    question,
  );
  for (const file of files) {
    calls.push({ tool: "guidelines_for", input: { file } });
    if (asksWhatItSays) calls.push({ tool: "read", input: { path: file, limit: 40 } });
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
export function isEmptyResult(result: string): boolean {
  return /^(no|nothing|none|0)\b|^$/i.test(result.trim());
}

export function pathsIn(text: string): string[] {
  const found = new Set<string>();
  for (const match of text.slice(0, 20_000).matchAll(pathPattern)) {
    // A skill tells where its own files lie: that is no question about them.
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
