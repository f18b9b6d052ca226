import { stripVTControlCharacters } from "node:util";
import { cutText } from "./server/bounds.ts";

// Controls, what only formats (bidirectional marks, zero widths, tags), private use, and line separators:
// a person sees none of it, a model reads all of it.
const unseen = /(?![\n\t])[\p{Cc}\p{Cf}\p{Co}\p{Zl}\p{Zp}]/gu;

/**
 * Text of a server, made safe to show to a model or a person: no control or invisible characters, no
 * terminal sequences, well-formed Unicode, at most `max` characters and an ellipsis.
 */
export function cleanText(text: string, max: number): string {
  // Cut first, generously: cleaning a gigabyte to keep a line of it is work a server should not cause.
  const beginning = text.slice(0, 4 * max).toWellFormed();
  const clean = stripVTControlCharacters(beginning).replace(unseen, "").trim();
  const { content, content_cut } = cutText(clean, max);
  return content_cut === undefined && text.length <= 4 * max ? content : `${content}…`;
}

/** The same on one line. */
export function cleanLine(text: string, max: number): string {
  return cleanText(text.slice(0, 4 * max).replace(/\s+/g, " "), max);
}
