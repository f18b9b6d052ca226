/** A part of a line, by its first character and the one after its last. UTF-16, from 0. */
export interface Span {
  readonly from: number;
  readonly to: number;
}

/** The key of a criterion in a line: `checkout#1.2`. */
export interface WrittenKey extends Span {
  readonly name: string;
  readonly number: string;
}

const keys =
  /(?<![\p{L}\p{N}_#./@-])([\p{L}\p{N}_.][\p{L}\p{N}_./-]{0,199})#([\p{L}\p{N}][\p{L}\p{N}._-]{0,99})/gu;
const numbers = /(?<![\p{L}\p{N}_#./@-])[\p{L}\p{N}][\p{L}\p{N}_-]{0,40}(?:\.\d{1,9}){0,4}/gu;
const started =
  /(?<![\p{L}\p{N}_#./@-])(?:([\p{L}\p{N}_.][\p{L}\p{N}_./-]{0,199})(#[\p{L}\p{N}._-]{0,99})?)$/u;
const list = /_?Requirements?:[^_]*?([\p{L}\p{N}.-]{0,40})$/u;

export function keyAt(line: string, character: number): WrittenKey | undefined {
  for (const { index: from, 0: text, 1: name = "", 2: written = "" } of line.matchAll(keys)) {
    const number = written.replace(/[._-]+$/, "");
    const to = from + text.length - (written.length - number.length);
    if (from <= character && character <= to) return { name, number, from, to };
  }
  return undefined;
}

/** The number of a criterion at a character of a line, as tasks and designs write it: `1.2`, `FR-3`. */
export function numberAt(line: string, character: number): (Span & { readonly number: string }) | undefined {
  for (const { index: from, 0: number } of line.matchAll(numbers)) {
    const to = from + number.length;
    if (from <= character && character <= to) return /\d/.test(number) ? { number, from, to } : undefined;
  }
  return undefined;
}

/** The word that a person has begun: a key, whose `#` is there or not, or a number of the own feature. */
export type StartedWord = { readonly from: number } & (
  | { readonly kind: "key"; readonly name: string }
  | { readonly kind: "feature"; readonly name: string }
  | { readonly kind: "number" }
);

/**
 * Finds the word that completion replaces. `before`: the line as far as the cursor; of a long line, its last 300 characters count.
 */
export function startedWord(before: string): StartedWord | undefined {
  const near = before.slice(-300);
  const offset = before.length - near.length;
  const key = started.exec(near);
  if (key?.[2] !== undefined) return { kind: "key", name: key[1] ?? "", from: offset + key.index };
  const numbered = list.exec(near);
  if (numbered !== null) return { kind: "number", from: before.length - (numbered[1] ?? "").length };
  if (key === null) return undefined;
  return { kind: "feature", name: key[1] ?? "", from: offset + key.index };
}
