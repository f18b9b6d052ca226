import { labelsInText } from "../adapters/kiro/kiro-document.ts";
import { shortLabel } from "./feature-labels.ts";
import { writtenNumbers } from "./written-numbers.ts";

/**
 * `metadata.criteria` of a task in the folder of a feature: the keys of the criteria that its text names, by `_Requirements: 1.2_`, else by
 * codes (`FR-003`); `codes` has those that only its format knows. The number of a whole requirement is a key, too. "All" promises too
 * much to mean each criterion of a feature.
 */
export function criteriaInTask(
  folder: string,
  text: string,
  codes: readonly string[] = [],
): { readonly criteria?: string[] } {
  const numbers = labelsInText(text).flatMap(({ names }) => names.map(({ number }) => number));
  const all = new Set(numbers.length > 0 ? numbers : [...codes, ...writtenCodes(text)]);
  all.delete("*");
  return all.size === 0 ? {} : { criteria: [...all].map((number) => `${shortLabel(folder)}#${number}`) };
}

function writtenCodes(text: string): string[] {
  return [...writtenNumbers(text)]
    .filter(({ number }) => /^[a-z]/i.test(number))
    .sort((one, other) => one.index - other.index)
    .map(({ number }) => number);
}
