import { matchesOf } from "../../base/matches.ts";
import { namesIn } from "../adapters/kiro/kiro-document.ts";

const number = String.raw`\d{1,4}(?:[._]\d{1,4}){0,3}`;
const between = String.raw`[ \t]{0,4}(?:,|、|;|&|and|to|-|–|—)[ \t]{0,4}(?:and[ \t]{1,4})?(?:(?:requirements?|reqs?)[ \t]{1,4})?`;

/**
 * `Requirement 1.2`, `Validates: Requirements 1.1, 2.3`, `test_requirement_1_2`, `AC-1.2`, `US3`; not
 * `### Requirement 1`, a heading in the text of a fixture.
 */
const numbers = new RegExp(
  String.raw`(?<![\p{L}\p{N}]|##[ \t])(requirements?|reqs?|acceptance[ _-]criteri(?:on|a)|criteri(?:on|a)|ac|user[ _-]stor(?:y|ies)|us|要件|需求)([ \t_:#.*-]{0,6})(${number}(?:${between}${number}){0,50})(?![\p{L}\p{N}])`,
  "giu",
);
/** `FR-001`, `test_fr_001_x`; without a hyphen or the like only in capitals. */
const codes = /(?<![\p{L}\p{N}])(N?FR|SC|BR)([-_ ]?)(\d{1,4}[a-z]?)(?![\p{L}\p{N}])/giu;
/** Words so common that a number after them means a requirement only if it is dotted or marked. */
const shortWords = new Set(["req", "reqs", "ac", "us"]);

/** The numbers of criteria in a text, with their offsets: first those after a word, then codes. */
export function* writtenNumbers(
  text: string,
): Generator<{ readonly index: number; readonly number: string }> {
  for (const { index, 1: word = "", 2: mark = "", 3: list = "" } of matchesOf(numbers, text)) {
    for (const found of numbersOf(word, mark, list)) yield { index, number: found };
  }
  for (const { index, 1: word = "", 2: mark = "", 3: digits = "" } of matchesOf(codes, text)) {
    if (mark === "_" || mark === "-" || word === word.toUpperCase()) {
      yield { index, number: `${word}-${digits}` };
    }
  }
}

function numbersOf(word: string, mark: string, list: string): readonly string[] {
  const isShort = shortWords.has(word.toLowerCase());
  const isMarked = word === word.toUpperCase() && (mark === "" || mark === "-");
  if (isShort && !isMarked && !/\d[._]\d/.test(list)) return [];
  const isStory = /^us/i.test(word);
  return namesIn(list.replaceAll("_", ".")).map(({ number: found }) => (isStory ? `US${found}` : found));
}
