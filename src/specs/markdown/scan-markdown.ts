import { htmlBlockAt } from "./html-block.ts";

/** What a line is part of. Only `prose` lines carry structure (headings, lists, tasks). */
export const lineKinds = { prose: 0, fence: 1, comment: 2, html: 3, frontMatter: 4 } as const;
export type LineKind = (typeof lineKinds)[keyof typeof lineKinds];

export interface Heading {
  /** 1 to 6. */
  readonly level: number;
  /** Without markers, closing sequence and control characters; at most `maxTitleLength`. */
  readonly title: string;
  /** 1-based line of the heading, and the last line of it (two or more for setext headings). */
  readonly line: number;
  readonly end_line: number;
}

/** A Markdown text by lines. Lines are 1-based everywhere; `starts[0]` belongs to line 1. */
export interface MarkdownScan {
  readonly text: string;
  readonly lineCount: number;
  /** Offset of each line's first character, and of the end without the line terminator. */
  readonly starts: readonly number[];
  readonly ends: readonly number[];
  readonly kinds: readonly LineKind[];
  readonly headings: readonly Heading[];
  /** First line behind the front matter; 1 where there is none. */
  readonly bodyLine: number;
  /** What the author left open: the line of the opener, for a diagnostic. */
  readonly unclosed: { readonly kind: "fence" | "comment" | "front_matter"; readonly line: number }[];
}

/** Titles are cut here, so that ids, file names and tables stay small whatever a file holds. */
export const maxTitleLength = 300;

// CommonMark 0.31.2, sections 4.2 (ATX) and 4.5 (fences). The indent of a fence is not limited,
// because list items indent theirs.
const atxHeading = /^ {0,3}(#{1,6})(?:[ \t]+|$)/;
const fenceOpener = /^[ \t]*(`{3,}|~{3,})(.*)$/s;
const setextUnderline = /^ {0,3}(=+|-+)[ \t]*$/;
const notParagraph = /^ {0,3}(?:[-+*>]|\d{1,9}[.)]|\|)(?:[ \t]|$)|^ {4}|^\t|^ {0,3}[>|]/;
// biome-ignore lint/suspicious/noControlCharactersInRegex: these are what must not reach a title
const controlCharacters = /[\u0000-\u001f\u007f-\u009f]/g;

/** Splits a text into lines at LF, CRLF and CR; offsets are those of the text as given. */
export function splitLines(text: string): { starts: number[]; ends: number[] } {
  const starts: number[] = [];
  const ends: number[] = [];
  let start = 0;
  if (text.includes("\r")) {
    for (const match of text.matchAll(/\r\n|\n|\r/g)) {
      starts.push(start);
      ends.push(match.index);
      start = match.index + match[0].length;
    }
  } else {
    for (let end = text.indexOf("\n"); end !== -1; end = text.indexOf("\n", start)) {
      starts.push(start);
      ends.push(end);
      start = end + 1;
    }
  }
  if (start < text.length) {
    starts.push(start);
    ends.push(text.length);
  }
  return { starts, ends };
}

/** The text of a 1-based line, without its terminator; empty past the end. */
export function lineText(scan: MarkdownScan, line: number): string {
  return scan.text.slice(scan.starts[line - 1] ?? scan.text.length, scan.ends[line - 1] ?? scan.text.length);
}

/** The text from line `from` to line `to`, inclusive, with the line ends as they lie in the file. */
export function textOfLines(scan: MarkdownScan, from: number, to: number): string {
  if (to < from) return "";
  return scan.text.slice(scan.starts[from - 1] ?? scan.text.length, scan.ends[to - 1] ?? scan.text.length);
}

/**
 * Scans a Markdown text once, line by line: fences, comments, HTML blocks, front matter, headings.
 *
 * Never throws, and takes time linear in the text. A fence or comment that is never closed runs to
 * the end of the text, as CommonMark says.
 */
export function scanMarkdown(text: string): MarkdownScan {
  const { starts, ends } = splitLines(text);
  const kinds: LineKind[] = new Array(starts.length).fill(lineKinds.prose);
  const headings: Heading[] = [];
  const unclosed: { kind: "fence" | "comment" | "front_matter"; line: number }[] = [];
  const line = (index: number): string => text.slice(starts[index], ends[index]);

  let first = 0;
  if (/^---[ \t]*$/.test(line(0))) {
    const close = frontMatterEnd(starts.length, line);
    if (close === -1) unclosed.push({ kind: "front_matter", line: 1 });
    else {
      kinds.fill(lineKinds.frontMatter, 0, close + 1);
      first = close + 1;
    }
  }

  // The paragraph that a setext underline would turn into a heading, or -1.
  let paragraph = -1;
  let previousBlank = true;
  for (let index = first; index < starts.length; index += 1) {
    const start = starts[index] ?? 0;
    const end = ends[index] ?? 0;
    let at = start;
    while (at < end && (text.charCodeAt(at) === 32 || text.charCodeAt(at) === 9)) at += 1;
    if (at === end) {
      paragraph = -1;
      previousBlank = true;
      continue;
    }
    const code = text.charCodeAt(at);
    if (code === 96 || code === 126) {
      const fence = fenceOpener.exec(text.slice(start, end));
      const marker = fence?.[1];
      if (marker !== undefined && !(code === 96 && fence?.[2]?.includes("`"))) {
        const close = fenceEnd(index + 1, marker, starts.length, line);
        if (close === -1) unclosed.push({ kind: "fence", line: index + 1 });
        const last = close === -1 ? starts.length - 1 : close;
        kinds.fill(lineKinds.fence, index, last + 1);
        index = last;
        paragraph = -1;
        previousBlank = true;
        continue;
      }
    } else if (code === 60 && at - start < 4) {
      const block = htmlBlockAt(text, at, end, paragraph === -1);
      if (block !== undefined) {
        let last = index;
        while (
          last < starts.length &&
          !block.endsOn(text, last === index ? at : (starts[last] ?? 0), ends[last] ?? 0)
        )
          last += 1;
        const kind = block.kind === "comment" ? lineKinds.comment : lineKinds.html;
        if (last >= starts.length) {
          if (block.kind === "comment") unclosed.push({ kind: "comment", line: index + 1 });
          last = starts.length - 1;
        }
        kinds.fill(kind, index, last + 1);
        index = last;
        paragraph = -1;
        previousBlank = true;
        continue;
      }
    } else if (code === 35 && at - start < 4) {
      const raw = text.slice(start, end);
      const heading = atxHeading.exec(raw);
      if (heading?.[1] !== undefined) {
        const title = raw.slice(heading[0].length, heading[0].length + maxTitleLength * 4);
        const level = heading[1].length;
        headings.push({ level, title: toTitle(withoutClosing(title)), line: index + 1, end_line: index + 1 });
        paragraph = -1;
        previousBlank = true;
        continue;
      }
    } else if ((code === 61 || code === 45) && paragraph !== -1) {
      const underline = setextUnderline.exec(text.slice(start, end));
      if (underline?.[1] !== undefined) {
        const title = text.slice(
          starts[paragraph],
          Math.min(ends[index - 1] ?? 0, (starts[paragraph] ?? 0) + maxTitleLength * 4),
        );
        headings.push({
          level: underline[1].startsWith("=") ? 1 : 2,
          title: toTitle(title.replace(/[\r\n]+[ \t]*/g, " ")),
          line: paragraph + 1,
          end_line: index + 1,
        });
        paragraph = -1;
        previousBlank = true;
        continue;
      }
    }
    // Text behind a list item or a quote continues it, so only text behind a blank line (or a
    // heading, fence, comment) starts a paragraph of its own.
    if (paragraph === -1 && previousBlank && !notParagraph.test(text.slice(start, Math.min(end, start + 16))))
      paragraph = index;
    previousBlank = false;
  }
  return { text, lineCount: starts.length, starts, ends, kinds, headings, bodyLine: first + 1, unclosed };
}

function frontMatterEnd(count: number, line: (index: number) => string): number {
  for (let index = 1; index < count; index += 1) {
    const text = line(index);
    if ((text.startsWith("---") || text.startsWith("...")) && text.slice(3).trim() === "") return index;
  }
  return -1;
}

function fenceEnd(from: number, marker: string, count: number, line: (index: number) => string): number {
  const character = marker[0] ?? "`";
  for (let index = from; index < count; index += 1) {
    const text = line(index).trim();
    if (text.length >= marker.length && text.startsWith(marker) && isRunOf(text, character)) return index;
  }
  return -1;
}

function isRunOf(text: string, character: string): boolean {
  for (let index = 0; index < text.length; index += 1) if (text[index] !== character) return false;
  return true;
}

function withoutClosing(title: string): string {
  const trimmed = title.trimEnd();
  let at = trimmed.length;
  while (at > 0 && trimmed[at - 1] === "#") at -= 1;
  if (at === trimmed.length) return trimmed;
  return at === 0 || trimmed[at - 1] === " " || trimmed[at - 1] === "\t" ? trimmed.slice(0, at) : trimmed;
}

/** A text as a title: one line, without control characters, at most `maxTitleLength` long. */
export function toTitle(text: string): string {
  const clean = text.replace(controlCharacters, " ").trim();
  return clean.length <= maxTitleLength ? clean : `${clean.slice(0, maxTitleLength - 1)}…`;
}
