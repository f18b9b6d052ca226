import type { Diagnostic } from "../../protocol/diagnostic.ts";
import { firstInk, isBlank, isSpace, runLength, splitLines } from "./characters.ts";

/** The kind of block that a line belongs to. Only `prose` lines have structure (headings, lists, tasks). */
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
  /** First line after the front matter; 1 if there is none. */
  readonly bodyLine: number;
  /** An unclosed block, with the line of its opener, for a diagnostic. */
  readonly unclosed: readonly {
    readonly kind: "fence" | "comment" | "front_matter";
    readonly line: number;
  }[];
}

/**
 * The text of a 1-based line, without its terminator; empty past the end.
 *
 * @example
 * ```ts
 * import { lineText, scanMarkdown } from "kit/specs";
 *
 * console.log(lineText(scanMarkdown("# Returns\n\nWithin 30 days.\n"), 3)); // Within 30 days.
 * ```
 */
export function lineText(scan: MarkdownScan, line: number): string {
  return scan.text.slice(scan.starts[line - 1] ?? scan.text.length, scan.ends[line - 1] ?? scan.text.length);
}

/**
 * The text from line `from` to line `to`, inclusive, with the line ends of the file.
 *
 * @example
 * ```ts
 * import { scanMarkdown, textOfLines } from "kit/specs";
 *
 * console.log(textOfLines(scanMarkdown("one\ntwo\nthree\n"), 1, 2)); // one\ntwo
 * ```
 */
export function textOfLines(scan: MarkdownScan, from: number, to: number): string {
  if (to < from) return "";
  return scan.text.slice(scan.starts[from - 1] ?? scan.text.length, scan.ends[to - 1] ?? scan.text.length);
}

/**
 * Scans a Markdown text once, line by line: fences, comments, HTML blocks, front matter, headings.
 *
 * Never throws, and takes time linear in the text. A fence or comment that is never closed runs to the end of the text, as
 * CommonMark says. Differs from CommonMark where real files do: the indent of a fence is not limited, because list items indent
 * their fences; a tag that is not one of HTML's block tags is text, because prompts wrap Markdown in tags; and headings inside
 * lists and quotes are not parsed.
 *
 * @see CommonMark 0.31.2, sections 4.2 (ATX), 4.3 (setext), 4.5 (fences), 4.6 (HTML)
 *
 * @example
 * ```ts
 * import { scanMarkdown } from "kit/specs";
 *
 * const { headings } = scanMarkdown("# Returns\n\n## Refunds\n");
 * console.log(headings.map(({ level, line }) => [level, line])); // [[1, 1], [2, 3]]
 * ```
 */
export function scanMarkdown(text: string): MarkdownScan {
  const { starts, ends } = splitLines(text);
  const kinds: LineKind[] = new Array(starts.length).fill(lineKinds.prose);
  const scanner: Scanner = { text, starts, ends, kinds, headings: [], unclosed: [], paragraph: none };
  const first = readFrontMatter(scanner);
  let afterBreak = true;
  for (let index = first; index < starts.length; index += 1) {
    const end = ends[index] ?? text.length;
    const at = firstInk(text, starts[index] ?? end, end);
    const last = at === end ? index : readBlock(scanner, index, at);
    // Text after a list item or a quote continues it, so only text after a blank line or a block (a heading, fence, comment)
    // starts a new paragraph.
    if (last !== none) scanner.paragraph = none;
    else if (scanner.paragraph !== none) {
      if (interruptsParagraph(text, at, end)) scanner.paragraph = none;
    } else if (afterBreak && !isIndentedCode(scanner, index, at) && startsParagraph(text, at, end)) {
      scanner.paragraph = index;
    }
    afterBreak = last !== none;
    if (last !== none) index = last;
  }
  const { headings, unclosed } = scanner;
  return { text, lineCount: starts.length, starts, ends, kinds, headings, bodyLine: first + 1, unclosed };
}

/** Lines are counted from zero in here. */
interface Scanner {
  readonly text: string;
  readonly starts: readonly number[];
  readonly ends: readonly number[];
  readonly kinds: LineKind[];
  readonly headings: Heading[];
  readonly unclosed: { kind: "fence" | "comment" | "front_matter"; line: number }[];
  /** The first line of the paragraph that a setext underline would turn into a heading, or `none`. */
  paragraph: number;
}

const none = -1;
const hash = 35;
const asterisk = 42;
const hyphen = 45;
const lessThan = 60;
const equals = 61;
const underscore = 95;
const backtick = 96;
const tilde = 126;
/** The first characters of the other blocks: headings, HTML, underlines, thematic breaks. */
const structural = new Set([hash, lessThan, equals, hyphen, asterisk, underscore]);

/** Reads the block that a line opens at offset `at`; returns its last line, or `none` for plain text. */
function readBlock(scanner: Scanner, index: number, at: number): number {
  const { text, ends } = scanner;
  const code = text.charCodeAt(at);
  if (code === backtick || code === tilde) return readFence(scanner, index, at);
  if (!structural.has(code) || isIndentedCode(scanner, index, at)) return none;
  if (code === hash) return readAtxHeading(scanner, index, at);
  if (code === lessThan) return readHtmlBlock(scanner, index, at);
  const isUnderline = scanner.paragraph !== none && (code === equals || code === hyphen);
  const heading = isUnderline ? readSetextHeading(scanner, index, at) : none;
  return heading === none && isThematicBreak(text, at, ends[index] ?? text.length) ? index : heading;
}

/** Four columns of white space make code of a line, and a tab is up to four. */
function isIndentedCode({ text, starts }: Scanner, index: number, at: number): boolean {
  const start = starts[index] ?? at;
  return at - start > 3 || (at > start && text.slice(start, at).includes("\t"));
}

/** The front matter between `---` and `---` or `...` at the very start; returns the line after it. */
function readFrontMatter(scanner: Scanner): number {
  if (!isMarkLine(scanner, 0, "---")) return 0;
  for (let index = 1; index < scanner.starts.length; index += 1) {
    if (!isMarkLine(scanner, index, "---") && !isMarkLine(scanner, index, "...")) continue;
    scanner.kinds.fill(lineKinds.frontMatter, 0, index + 1);
    return index + 1;
  }
  scanner.unclosed.push({ kind: "front_matter", line: 1 });
  return 0;
}

function isMarkLine({ text, starts, ends }: Scanner, index: number, mark: string): boolean {
  const start = starts[index] ?? text.length;
  return text.startsWith(mark, start) && isBlank(text, start + mark.length, ends[index] ?? text.length);
}

function readFence(scanner: Scanner, index: number, at: number): number {
  const { text, starts, ends, kinds, unclosed } = scanner;
  const fence = fenceAt(text, at, ends[index] ?? text.length);
  if (fence === undefined) return none;
  let last = index + 1;
  while (
    last < starts.length &&
    !closesFence(fence, text, { start: starts[last] ?? 0, end: ends[last] ?? 0 })
  ) {
    last += 1;
  }
  if (last === starts.length) {
    unclosed.push({ kind: "fence", line: index + 1 });
    last -= 1;
  }
  kinds.fill(lineKinds.fence, index, last + 1);
  return last;
}

function readHtmlBlock(scanner: Scanner, index: number, at: number): number {
  const { text, starts, ends, kinds, unclosed } = scanner;
  const block = htmlBlockAt(text, at, ends[index] ?? text.length);
  if (block === undefined) return none;
  let last = index;
  if (block.closer === undefined) {
    while (last + 1 < starts.length && !isBlank(text, starts[last + 1] ?? 0, ends[last + 1] ?? 0)) last += 1;
  } else {
    let from = block.searchFrom;
    while (last < starts.length && !block.closer.test(text.slice(from, ends[last]))) {
      last += 1;
      from = starts[last] ?? text.length;
    }
  }
  if (last === starts.length) {
    if (block.kind === "comment") unclosed.push({ kind: "comment", line: index + 1 });
    last -= 1;
  }
  kinds.fill(lineKinds[block.kind], index, last + 1);
  return last;
}

function readAtxHeading({ text, ends, headings }: Scanner, index: number, at: number): number {
  const end = ends[index] ?? text.length;
  const level = runLength(text, at, end);
  const from = at + level;
  if (level > 6 || (from < end && !isSpace(text.charCodeAt(from)))) return none;
  const title = toTitle(withoutClosing(text.slice(from, end)));
  headings.push({ level, title, line: index + 1, end_line: index + 1 });
  return index;
}

/** An underline below a paragraph; the paragraph, however many lines it has, is the title. */
function readSetextHeading(scanner: Scanner, index: number, at: number): number {
  const { text, starts, ends, headings, paragraph } = scanner;
  const end = ends[index] ?? text.length;
  if (!isBlank(text, at + runLength(text, at, end), end)) return none;
  const title = textOf(text, starts[paragraph] ?? end, ends[index - 1] ?? end);
  const level = text.charCodeAt(at) === equals ? 1 : 2;
  headings.push({ level, title, line: paragraph + 1, end_line: index + 1 });
  return index;
}

/** Joins lines to one title; reads no more of them than a title can hold. */
function textOf(text: string, start: number, end: number): string {
  return toTitle(text.slice(start, Math.min(end, start + 4 * maxTitleLength)).replace(/[\r\n]+[ \t]*/g, " "));
}

/** The opener of a code fence: its character and how often it is repeated. */
interface Fence {
  readonly code: number;
  readonly length: number;
}

/** The fence (CommonMark 0.31.2, section 4.5) that a line opens with the backtick or tilde at `at`. */
function fenceAt(text: string, at: number, end: number): Fence | undefined {
  const code = text.charCodeAt(at);
  const length = runLength(text, at, end);
  // Backticks in the info string make it inline code.
  if (length < 3 || (code === backtick && text.slice(at + length, end).includes("`"))) return undefined;
  return { code, length };
}

/** Whether a line closes a fence: a run of the fence's character that is at least as long, without other text. */
function closesFence(
  fence: Fence,
  text: string,
  line: { readonly start: number; readonly end: number },
): boolean {
  const at = firstInk(text, line.start, line.end);
  if (at === line.end || text.charCodeAt(at) !== fence.code) return false;
  const length = runLength(text, at, line.end);
  return length >= fence.length && isBlank(text, at + length, line.end);
}

/** An HTML block (CommonMark 0.31.2, section 4.6) by where it ends. */
interface HtmlBlock {
  readonly kind: "comment" | "html";
  /** Matches the last line of the block; without it, the block ends at the next blank line. */
  readonly closer: RegExp | undefined;
  /** The offset after the opener, where the search for the closer starts. */
  readonly searchFrom: number;
}

const rawTextTag = /^<(?:script|pre|style|textarea)(?:[\s>]|$)/i;
const rawTextEnd = /<\/(?:script|pre|style|textarea)>/i;
const blockTag =
  /^<\/?(?:address|article|aside|base|basefont|blockquote|body|caption|center|col|colgroup|dd|details|dialog|dir|div|dl|dt|fieldset|figcaption|figure|footer|form|frame|frameset|h[1-6]|head|header|hr|html|iframe|legend|li|link|main|menu|menuitem|meta|nav|noframes|ol|optgroup|option|p|param|search|section|summary|table|tbody|td|tfoot|th|thead|title|tr|track|ul)(?:\s|\/?>|$)/i;

/**
 * The HTML block that the line from offset `at` to `end` opens, if it does (kinds 1 to 6: raw text,
 * comments, processing instructions, declarations, CDATA, block tags).
 */
function htmlBlockAt(text: string, at: number, end: number): HtmlBlock | undefined {
  // `<!-->` and `<!--->` are comments that close at once.
  if (text.startsWith("<!--", at)) return { kind: "comment", closer: /-->/, searchFrom: at + 2 };
  const head = text.slice(at, Math.min(end, at + 24));
  if (rawTextTag.test(head)) return { kind: "html", closer: rawTextEnd, searchFrom: at };
  if (head.startsWith("<?")) return { kind: "html", closer: /\?>/, searchFrom: at + 2 };
  if (head.startsWith("<![CDATA[")) return { kind: "html", closer: /\]\]>/, searchFrom: at + 9 };
  if (/^<![a-z]/i.test(head)) return { kind: "html", closer: />/, searchFrom: at + 2 };
  return blockTag.test(head) ? { kind: "html", closer: undefined, searchFrom: at } : undefined;
}

const questionMark = 63;

const startsOther = /^(?:[-+*](?:[ \t]|$)|\d{1,9}[.)](?:[ \t]|$)|[>|])/;
const interrupts = /^(?:[-+*][ \t]+\S|1[.)][ \t]+\S|>)/;

/** Whether text after a break is a paragraph: no list item, quote or table row. */
function startsParagraph(text: string, at: number, end: number): boolean {
  return !startsOther.test(text.slice(at, Math.min(at + 12, end)));
}

/** Whether a line ends the paragraph above it: a quote, or a list item that is not empty. */
function interruptsParagraph(text: string, at: number, end: number): boolean {
  // All of those begin with a character below the letters.
  return text.charCodeAt(at) < questionMark && interrupts.test(text.slice(at, end));
}

/** Three or more of the same character of `* - _`, with optional spaces between them. */
function isThematicBreak(text: string, from: number, end: number): boolean {
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

/** A warning about the structure of a file: something that its tool refuses, or that kit reads otherwise than it looks. */
export function structureWarning(
  { path, line }: Pick<Diagnostic, "path" | "line">,
  code: string,
  message: string,
): Diagnostic {
  return { severity: "warning", rule: "structure", code, message, path, ...(line !== undefined && { line }) };
}

/**
 * Warnings about code fences and comments that are never closed: the scan finds no headings and no tasks after them. Front matter
 * has its own diagnostics.
 */
export function unclosedDiagnostics(scan: MarkdownScan, path: string): Diagnostic[] {
  return scan.unclosed.flatMap(({ kind, line }): Diagnostic[] => {
    if (kind === "front_matter") return [];
    const name = kind === "fence" ? "code fence" : "comment";
    const message = `This ${name} is never closed, so the rest of the file is part of it.`;
    return [structureWarning({ path, line }, `${kind}_unclosed`, message)];
  });
}

/** Longer titles are cut, so that ids, file names and tables stay small for every file. */
export const maxTitleLength = 300;

// biome-ignore lint/suspicious/noControlCharactersInRegex: these are what must not reach a title
const controlCharacters = /[\u0000-\u001f\u007f-\u009f]+/g;

/** Converts a text to a title: one line, without control characters, at most `maxTitleLength` long. */
export function toTitle(text: string): string {
  const clean = text
    .slice(0, 4 * maxTitleLength)
    .replace(controlCharacters, " ")
    .trim();
  if (clean.length <= maxTitleLength) return clean;
  return `${clean.slice(0, maxTitleLength - 1).replace(/[\ud800-\udbff]$/, "")}…`;
}

/** The text of an ATX heading without its closing sequence (`## A ##`). */
function withoutClosing(text: string): string {
  const trimmed = text.trimEnd();
  let at = trimmed.length;
  while (at > 0 && trimmed[at - 1] === "#") at -= 1;
  if (at === trimmed.length) return trimmed;
  return at === 0 || trimmed[at - 1] === " " || trimmed[at - 1] === "\t" ? trimmed.slice(0, at) : trimmed;
}
