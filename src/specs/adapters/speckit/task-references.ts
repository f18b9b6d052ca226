import type { DraftLink, DraftMention } from "../../adapter.ts";
import { lineText, type MarkdownScan } from "../../markdown/scan-markdown.ts";
import { toMentionPath } from "../../model/mention-path.ts";
import { mentionsIn } from "../../model/mentions.ts";
import type { LineRange } from "../../model/task-list.ts";
import { statementId, storyId } from "./speckit-path.ts";

const statements = /\b((?:N?FR|SC)-)(\d+)([A-Za-z]?)\b(?:[ \t]*(?:\.\.\.?|…|–|-|to)[ \t]*\1(\d+)\b)?/g;
const wordBoundary = /[\s`()[\]<>"',;]/;
/** A range of numbers longer than this is not what anybody means. */
const maxRange = 100;

/** The user story that a task belongs to, and the statements it names. */
export function taskLinks(
  scan: MarkdownScan,
  lines: readonly LineRange[],
  place: { feature: string; story: string | undefined },
): DraftLink[] {
  const links = new Map<string, DraftLink>();
  const add = (target: string, line: number): void => {
    if (!links.has(target)) links.set(target, { kind: "implements", target, line });
  };
  if (place.story !== undefined) add(storyId(place.feature, place.story.slice(2)), lines[0]?.from ?? 1);
  for (const line of linesIn(lines)) {
    for (const [, prefix = "", first = "", letter = "", last] of lineText(scan, line).matchAll(statements)) {
      const from = Number(first);
      const to = last === undefined ? from : Math.min(Number(last), from + maxRange);
      add(statementId(place.feature, `${prefix}${first}${letter}`), line);
      for (let number = from + 1; number <= to; number += 1)
        add(statementId(place.feature, `${prefix}${String(number).padStart(first.length, "0")}`), line);
    }
  }
  return [...links.values()];
}

/** The template asks for exact file paths in the words of a task, so plain words are looked at, too. */
export function taskMentions(scan: MarkdownScan, lines: readonly LineRange[]): DraftMention[] {
  const mentions = new Map<string, DraftMention>();
  for (const { from, to } of lines)
    for (const mention of mentionsIn(scan, from, to)) mentions.set(mention.path, mention);
  for (const line of linesIn(lines)) {
    for (const word of wordsWithSlash(lineText(scan, line))) {
      const path = /\/.*\.[A-Za-z0-9]/.test(word) ? toMentionPath(word.replace(/[.:]+$/, "")) : undefined;
      if (path !== undefined && !mentions.has(path)) mentions.set(path, { path, line });
    }
  }
  return [...mentions.values()];
}

/** The words of a line that hold a slash; quotes, brackets and commas are no part of a word. */
function wordsWithSlash(text: string): string[] {
  const words: string[] = [];
  let end = 0;
  for (let slash = text.indexOf("/"); slash !== -1; slash = text.indexOf("/", end)) {
    let start = slash;
    while (start > end && !wordBoundary.test(text[start - 1] ?? "")) start -= 1;
    end = slash + 1;
    while (end < text.length && !wordBoundary.test(text[end] ?? "")) end += 1;
    if (end - start <= 512) words.push(text.slice(start, end));
  }
  return words;
}

/** Every line of some ranges, in order. */
export function* linesIn(ranges: readonly LineRange[]): Generator<number> {
  for (const { from, to } of ranges) for (let line = from; line <= to; line += 1) yield line;
}
