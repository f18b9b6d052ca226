import { wordsOf } from "./criteria-index.ts";
import type { Criterion } from "./list-criteria.ts";
import type { TestTitle } from "./test-references.ts";

export interface SimilarTitle extends TestTitle {
  readonly path: string;
  /** 0 to 1: the cosine of both texts' words, rare words counting more. */
  readonly score: number;
}

/** Finds, for criteria without a test, the tests whose titles sound like them. */
export interface TitleComparison {
  /** `features` are those the file belongs to; a title of such a file is compared with them first. */
  add(file: {
    readonly path: string;
    readonly titles: readonly TestTitle[];
    readonly features: ReadonlySet<number>;
  }): void;
  /** The best three or fewer, best first. */
  suggestionsFor(criterion: number): readonly SimilarTitle[];
}

/** A lower similarity is chance. */
const leastScore = 0.3;
const mostSuggestions = 3;
/** A word that more criteria have is too common to suggest a test alone. */
const commonWord = 200;
const stopWords = new Set(
  "the and for are with that this then when while where shall should must will not from into than its has have been".split(
    " ",
  ),
);

/**
 * Prepares a comparison with the criteria at the given indexes. Weighs words by how few criteria have
 * them (inverse document frequency), so the cost of a title does not grow with their number.
 */
export function createTitleComparison(
  criteria: readonly Criterion[],
  indexes: readonly number[],
): TitleComparison {
  const words = new Map(indexes.map((index) => [index, significantWords(criteria[index]?.text ?? "")]));
  const having = new Map<string, number[]>();
  for (const [index, own] of words) {
    for (const word of own) {
      const list = having.get(word);
      if (list === undefined) having.set(word, [index]);
      else list.push(index);
    }
  }
  const weight = (word: string): number => Math.log(1 + indexes.length / (having.get(word)?.length ?? 0.5));
  const lengthOf = (own: Iterable<string>): number => Math.hypot(...[...own].map(weight));
  const lengths = new Map([...words].map(([index, own]) => [index, lengthOf(own)]));
  const found = new Map<number, SimilarTitle[]>();

  const compare = (title: ReadonlySet<string>): Map<number, number> => {
    const products = new Map<number, number>();
    for (const word of title) {
      const list = having.get(word);
      if (list === undefined || list.length > commonWord) continue;
      for (const index of list) products.set(index, 0);
    }
    const titleLength = lengthOf(title);
    for (const index of products.keys()) {
      const own = words.get(index);
      const shared = [...title].filter((word) => own?.has(word));
      // One word in common is not a likeness, however rare it is.
      const product = shared.length < 2 ? 0 : shared.reduce((sum, word) => sum + weight(word) ** 2, 0);
      products.set(index, product / (titleLength * (lengths.get(index) ?? 1) || 1));
    }
    return products;
  };

  return {
    add({ path, titles, features }) {
      for (const title of titles) {
        for (const [index, likeness] of compare(significantWords(title.text))) {
          const isOwn = features.has(criteria[index]?.feature ?? -1);
          // A file of the feature needs less likeness, one of another feature more.
          const score = Math.min(1, likeness * (isOwn ? 1.25 : features.size > 0 ? 0.8 : 1));
          if (score >= leastScore) keepBest(found, index, { ...title, path, score });
        }
      }
    },
    suggestionsFor: (criterion) => found.get(criterion) ?? [],
  };
}

function keepBest(found: Map<number, SimilarTitle[]>, index: number, title: SimilarTitle): void {
  const best = found.get(index) ?? [];
  const at = best.findIndex(({ score }) => score < title.score);
  best.splice(at === -1 ? best.length : at, 0, title);
  found.set(index, best.slice(0, mostSuggestions));
}

function significantWords(text: string): ReadonlySet<string> {
  const words = wordsOf(text.slice(0, 2000)).filter((word) => word.length > 2 && !stopWords.has(word));
  // Plurals and third persons are the same word to a reader.
  return new Set(words.map((word) => (word.length > 3 ? word.replace(/(?<!s)s$/, "") : word)));
}
