import { stripVTControlCharacters } from "node:util";
import { cutText } from "./server/bounds.ts";

// Control characters, format characters (bidirectional marks, zero widths, tags), private use, and line separators:
// people cannot see them, but models read them.
const invisible = /(?![\n\t])[\p{Cc}\p{Cf}\p{Co}\p{Zl}\p{Zp}]/gu;

/** The text without control and invisible characters and terminal sequences, well-formed. */
export function visibleText(text: string): string {
  return stripVTControlCharacters(text.toWellFormed()).replace(invisible, "");
}

/**
 * Makes a server's text safe for models and people: no control or invisible characters, no terminal sequences,
 * well-formed Unicode, at most `max` characters and an ellipsis.
 */
export function cleanText(text: string, max: number): string {
  // Cut first, with some margin, so that a server cannot make kit clean a gigabyte to keep one line.
  const clean = visibleText(text.slice(0, 4 * max)).trim();
  const { content, content_cut } = cutText(clean, max);
  return content_cut === undefined && text.length <= 4 * max ? content : `${content}…`;
}

/** Like `cleanText`, with all whitespace replaced by single spaces. */
export function cleanLine(text: string, max: number): string {
  return cleanText(text.slice(0, 4 * max).replace(/\s+/g, " "), max);
}
