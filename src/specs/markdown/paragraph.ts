import { isSpace } from "./characters.ts";

const asterisk = 42;
const hyphen = 45;
const questionMark = 63;
const underscore = 95;

const startsOther = /^(?:[-+*](?:[ \t]|$)|\d{1,9}[.)](?:[ \t]|$)|[>|])/;
const interrupts = /^(?:[-+*][ \t]+\S|1[.)][ \t]+\S|>)/;

/** Whether text behind a break is a paragraph: no list item, quote or table row. */
export function startsParagraph(text: string, at: number, end: number): boolean {
  return !startsOther.test(text.slice(at, Math.min(at + 12, end)));
}

/** Whether a line ends the paragraph above it: a quote, or a list item that is not empty. */
export function interruptsParagraph(text: string, at: number, end: number): boolean {
  // All of those begin with a character below the letters.
  return text.charCodeAt(at) < questionMark && interrupts.test(text.slice(at, end));
}

/** Three or more of one of `* - _`, with spaces between them or none. */
export function isThematicBreak(text: string, from: number, end: number): boolean {
  const code = text.charCodeAt(from);
  if (code !== asterisk && code !== hyphen && code !== underscore) return false;
  let count = 0;
  for (let at = from; at < end; at += 1) {
    const next = text.charCodeAt(at);
    if (next === code) count += 1;
    else if (!isSpace(next)) return false;
  }
  return count >= 3;
}
