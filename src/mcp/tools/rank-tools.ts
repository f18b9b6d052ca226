import { isRecord } from "../../base/record.ts";
import type { ListedTool } from "./listed-tool.ts";

/** How much a word counts by where it stands. */
const weights = { name: 4, title: 3, server: 2, description: 1, property: 1 } as const;

/** The words of a tool and how much each counts. */
type WordWeights = ReadonlyMap<string, number>;

/**
 * The tools that have at least one of the words, best first: rare words count more than common ones, a
 * word of the name more than one of the description, and a beginning of a word more than half of it.
 */
export function rankTools(tools: readonly ListedTool[], query: string): readonly ListedTool[] {
  const queryWords = [...new Set(wordsOf(query))];
  const indexed = tools.map((tool) => ({ tool, words: wordWeights(tool) }));
  const rarity = new Map(
    queryWords.map((word) => {
      const holders = indexed.filter(({ words }) => weightOf(words, word) > 0).length;
      return [word, Math.log(1 + tools.length / Math.max(1, holders))] as const;
    }),
  );
  const scored = indexed.map(({ tool, words }) => {
    let score = query.includes(tool.fullName) || query.trim() === tool.name ? 1_000 : 0;
    for (const word of queryWords) score += weightOf(words, word) * (rarity.get(word) ?? 0);
    return { tool, score };
  });
  return scored
    .filter(({ score }) => score > 0)
    .sort((one, other) => other.score - one.score)
    .map(({ tool }) => tool);
}

function weightOf(words: WordWeights, queryWord: string): number {
  const exact = words.get(queryWord);
  if (exact !== undefined) return exact;
  if (queryWord.length < 3) return 0;
  let best = 0;
  for (const [word, weight] of words) {
    if (word.startsWith(queryWord) || (word.length > 3 && queryWord.startsWith(word)))
      best = Math.max(best, 0.6 * weight);
  }
  return best;
}

// A tool's words are cut once, however often it is searched.
const known = new WeakMap<ListedTool, WordWeights>();

function wordWeights(tool: ListedTool): WordWeights {
  let words = known.get(tool);
  if (words === undefined) {
    words = weigh(tool);
    known.set(tool, words);
  }
  return words;
}

function weigh(tool: ListedTool): WordWeights {
  const words = new Map<string, number>();
  const add = (text: string, weight: number): void => {
    for (const word of wordsOf(text)) words.set(word, Math.max(words.get(word) ?? 0, weight));
  };
  const { properties } = tool.schema.bounded;
  add(tool.name, weights.name);
  add(tool.title, weights.title);
  add(tool.server, weights.server);
  add(tool.description, weights.description);
  add(Object.keys(isRecord(properties) ? properties : {}).join(" "), weights.property);
  return words;
}

/** `createIssue_v2` is create, issue and v2. */
function wordsOf(text: string): readonly string[] {
  return (
    text
      .slice(0, 10_000)
      .replace(/([a-z0-9])([A-Z])/g, "$1 $2")
      .toLowerCase()
      .match(/[\p{L}\p{N}]+/gu) ?? []
  );
}
