import type { Diagnostic } from "../../protocol/diagnostic.ts";
import type { SourceType } from "../../protocol/guideline.ts";
import { splitOutsideBraces } from "../../specs/markdown/characters.ts";
import {
  type FrontMatter,
  frontMatterDiagnostics,
  readFrontMatter,
} from "../../specs/markdown/front-matter.ts";
import {
  type Heading,
  lineKinds,
  lineText,
  type MarkdownScan,
  maxTitleLength,
  scanMarkdown,
  textOfLines,
  unclosedDiagnostics,
} from "../../specs/markdown/scan-markdown.ts";
import { withoutBlankEdges } from "../../specs/markdown/segments.ts";
import { slugOf } from "../../specs/model/block-title.ts";
import type { GuidelineDraft, GuidelineTool, Inclusion, ParsedGuidelines } from "../adapter.ts";
import { type ImportSyntax, importsIn } from "../guideline-imports.ts";
import {
  findEmbedded,
  isInside,
  managedFileOf,
  managedLines,
  managedPartOf,
  readPatternLine,
  type SealedStretch,
} from "../kit-marks.ts";

/** The properties of a file that follow from its format and path. */
export interface FileKind {
  readonly source_type: SourceType;
  readonly tool: GuidelineTool;
  readonly scope: string;
  readonly imports: ImportSyntax;
}

/** The declarations of a file's front matter. */
export interface Declared {
  readonly inclusion: Inclusion;
  readonly globs: readonly string[];
  readonly tags: readonly string[];
  readonly diagnostics?: readonly Diagnostic[];
}

/** Parses a file that is one guideline: steering, `.mdc`, `.claude/rules`. A blank file has no guideline. */
export function parseWholeFile(
  source: { readonly path: string; readonly text: string },
  kind: FileKind,
  declare: (frontMatter: FrontMatter) => Declared,
): ParsedGuidelines {
  const scan = scanMarkdown(source.text);
  const frontMatter = readFrontMatter(scan);
  const diagnostics = textDiagnostics(source.path, scan, frontMatter);
  if (source.text.trim() === "") return { drafts: [], diagnostics };
  const declared = declare(frontMatter);
  const lines = { from: frontMatter.bodyLine, to: scan.lineCount };
  const body = titledBody(scan, lines);
  const titles = [frontMatter.data.title, frontMatter.data.name].find((name) => typeof name === "string");
  const fallback = cleanTitle(singleLine(String(titles ?? "")), titleOfFile(source.path));
  const managed = managedFileOf(source.text);
  const draft: GuidelineDraft = {
    title: cleanTitle(body.title ?? "", fallback),
    content: body.content,
    source_type: kind.source_type,
    tool: kind.tool,
    tags: declared.tags,
    inclusion: declared.inclusion,
    globs: declared.globs,
    scope: kind.scope,
    frontmatter: frontMatter.data,
    span: { start_line: 1, end_line: scan.lineCount },
    imports: importsIn(scan, kind.imports, lines),
    whole_file: true,
    ...(managed !== undefined && { managed: managed.source }),
  };
  return { drafts: [draft], diagnostics: [...diagnostics, ...(declared.diagnostics ?? [])] };
}

/**
 * The title of a stretch of lines, and its content. A first-level heading at the start is the title and not part of the
 * content; a later one is both.
 */
function titledBody(
  scan: MarkdownScan,
  lines: { readonly from: number; readonly to: number },
): { readonly title?: string; readonly content: string } {
  const { from, to } = withoutBlankEdges(scan, lines.from, lines.to);
  const heading = scan.headings.find((each) => each.level === 1 && each.line >= from && each.line <= to);
  if (heading === undefined) return { content: toContent(textOfLines(scan, from, to)) };
  if (heading.line !== from) return { title: heading.title, content: toContent(textOfLines(scan, from, to)) };
  const rest = withoutBlankEdges(scan, heading.end_line + 1, to);
  return { title: heading.title, content: toContent(textOfLines(scan, rest.from, rest.to)) };
}

/** Blank text is not a content: no format would keep it. */
function toContent(text: string): string {
  return text.trim() === "" ? "" : text;
}

function singleLine(text: string): string {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: these are what must not reach a title
  return text.replace(/[\u0000-\u001f\u007f-\u009f]+/g, " ").slice(0, 300);
}

/** A stretch of a sectioned file: what is before the first section, or a heading with its text. */
interface Chunk {
  readonly heading?: Heading | undefined;
  readonly from: number;
  readonly to: number;
}

/**
 * Parses a file with a guideline per second-level section. Text before the first section is a separate guideline unless it is
 * blank, and so is text under a later first-level heading. A file without second-level sections is one guideline.
 */
export function parseSectionedFile(
  source: { readonly path: string; readonly text: string },
  kind: FileKind,
  declare: (frontMatter: FrontMatter) => Declared = always,
): ParsedGuidelines {
  const embedded = findEmbedded(source.text);
  const scanned = { ...scanMarkdown(embedded.masked), text: source.text };
  const frontMatter = readFrontMatter(scanned);
  const scan = { ...scanned, bodyLine: frontMatter.bodyLine };
  const diagnostics = textDiagnostics(source.path, scan, frontMatter);
  const declared = declare(frontMatter);
  const fallback = cleanTitle(source.path.slice(source.path.lastIndexOf("/") + 1), "Untitled");
  if (source.text.trim() === "") return { drafts: [], diagnostics };
  const drafts: GuidelineDraft[] = [];
  const managed = managedPartOf(scan);
  const chunks = chunksOf(scan, managedLines(scan));
  const headingLines = linesOfHeadings(scan);
  for (const chunk of chunks) {
    const isSection = chunk.heading?.level === 2 || chunks.length === 1;
    if (!isSection && !hasContent(scan, chunk, headingLines)) continue;
    const { title, content, globs } = contentOf(scan, chunk, embedded.stretches);
    const span = spanOf(scan, chunk, chunks.length === 1);
    drafts.push({
      title: cleanTitle(title ?? "", chunk.heading === undefined ? fallback : "Untitled"),
      content,
      source_type: kind.source_type,
      tool: kind.tool,
      tags: declared.tags,
      inclusion: globs === undefined ? declared.inclusion : "pattern",
      globs: globs ?? declared.globs,
      scope: kind.scope,
      frontmatter: frontMatter.data,
      span,
      imports: importsIn(scan, kind.imports, {
        from: Math.max(span.start_line, scan.bodyLine),
        to: span.end_line,
      }),
      whole_file: chunks.length === 1,
      ...(title !== undefined && chunk.heading !== undefined && { section: slugOf(title) || "section" }),
      ...(isInside(managed, span.start_line) && { managed: managed.source }),
    });
  }
  return { drafts, diagnostics: [...diagnostics, ...(declared.diagnostics ?? [])] };
}

function always(): Declared {
  return { inclusion: "always", globs: [], tags: [] };
}

/**
 * A section ends at the next heading of the first or second level. `marks` are lines of comments that belong to no section; each ends the section before it.
 */
function chunksOf(scan: MarkdownScan, marks: readonly number[]): Chunk[] {
  const hasSections = scan.headings.some(({ level }) => level === 2);
  const title = scan.headings.find(({ level }) => level <= 2);
  const headings = scan.headings.filter(
    // The first heading is the title of the text before the first section.
    (heading) => hasSections && heading.level <= 2 && (heading.level === 2 || heading !== title),
  );
  const borders: readonly { line: number; end_line: number; heading?: Heading }[] = [
    ...headings.map((heading) => ({ line: heading.line, end_line: heading.end_line, heading })),
    ...marks.map((line) => ({ line, end_line: line })),
  ].sort((one, other) => one.line - other.line);
  const chunks: Chunk[] = [{ from: scan.bodyLine, to: (borders[0]?.line ?? scan.lineCount + 1) - 1 }];
  for (const [index, { heading, end_line }] of borders.entries()) {
    chunks.push({
      heading,
      from: end_line + 1,
      to: (borders[index + 1]?.line ?? scan.lineCount + 1) - 1,
    });
  }
  return chunks;
}

/** Whether a chunk holds more than headings, rules, comments and blank lines. */
function hasContent(scan: MarkdownScan, chunk: Chunk, headingLines: ReadonlySet<number>): boolean {
  for (let line = chunk.from; line <= chunk.to; line += 1) {
    if (headingLines.has(line) || scan.kinds[line - 1] === lineKinds.comment) continue;
    if (!/^[-*_\s]*$/.test(lineText(scan, line))) return true;
  }
  return false;
}

function linesOfHeadings(scan: MarkdownScan): Set<number> {
  const lines = new Set<number>();
  for (const heading of scan.headings)
    for (let line = heading.line; line <= heading.end_line; line += 1) lines.add(line);
  return lines;
}

function contentOf(
  scan: MarkdownScan,
  chunk: Chunk,
  stretches: ReadonlyMap<number, SealedStretch>,
): { title?: string; content: string; globs?: string[] | undefined } {
  if (chunk.heading === undefined) return titledBody(scan, chunk);
  const title = chunk.heading.title;
  let { from, to } = withoutBlankEdges(scan, chunk.from, chunk.to);
  const globs = from <= to ? readPatternLine(lineText(scan, from)) : undefined;
  if (globs !== undefined) ({ from, to } = withoutBlankEdges(scan, from + 1, to));
  const stretch = stretches.get(from);
  const text = stretch?.close === to ? textOfLines(scan, from + 1, to - 1) : textOfLines(scan, from, to);
  return { title, content: toContent(text), globs };
}

/** From the heading to the last line that is not blank; all lines if the file is one guideline. */
function spanOf(scan: MarkdownScan, chunk: Chunk, isWhole: boolean): GuidelineDraft["span"] {
  if (isWhole) return { start_line: 1, end_line: scan.lineCount };
  const { from, to } = withoutBlankEdges(scan, chunk.heading?.line ?? chunk.from, chunk.to);
  return { start_line: from, end_line: to };
}

/**
 * Whether a string is several globs between commas. In all else the tools agree: globs are relative to
 * the folder of their scope, `*` stays within a folder, `**` spans any, braces expand, and a bracket
 * that is never closed matches nothing.
 */
const splitsCommas: Readonly<Record<GuidelineTool, boolean>> = {
  claude: true,
  cursor: true,
  // In Kiro a comma is part of the pattern: several patterns are a list.
  kiro: false,
  agents: false,
  copilot: true,
  gemini: false,
  windsurf: true,
  cline: true,
  zed: false,
};

/** The globs that a front matter value declares (a list or a string), without the quotes around each glob. */
export function declaredGlobs(value: unknown, tool: GuidelineTool): string[] {
  if (Array.isArray(value)) return value.filter(isText).map(unquoted).filter(isSomething);
  if (!isText(value)) return [];
  const parts = splitsCommas[tool] ? splitOutsideBraces(value) : [value];
  return parts.map(unquoted).filter(isSomething);
}

function isText(value: unknown): value is string {
  return typeof value === "string";
}

function isSomething(text: string): boolean {
  return text !== "";
}

function unquoted(text: string): string {
  const trimmed = text.trim();
  return /^(["']).*\1$/s.test(trimmed) && trimmed.length > 1 ? trimmed.slice(1, -1).trim() : trimmed;
}

// Unicode 16, table 23-3: marks that change the order in which text is shown.
const bidirectional = /[\u202a-\u202e\u2066-\u2069]/g;

/** A heading as a title: without marks that reorder text, never empty. */
export function cleanTitle(title: string, fallback: string): string {
  const clean = title.replace(bidirectional, "").trim();
  return clean === "" ? fallback : clean;
}

/** A file name as a title: `python-style.md` is "Python style". */
function titleOfFile(path: string): string {
  const name = path.slice(path.lastIndexOf("/") + 1).replace(/(?:\.instructions)?\.[a-z]+$/i, "");
  const words = name
    // biome-ignore lint/suspicious/noControlCharactersInRegex: these are what must not reach a title
    .replace(/[-_\s\u0000-\u001f\u007f-\u009f]+/g, " ")
    .trim()
    .slice(0, maxTitleLength);
  return cleanTitle(words.charAt(0).toUpperCase() + words.slice(1), "Untitled");
}

/** Diagnostics of every guideline file: front matter, unclosed fences and comments, hidden characters. */
function textDiagnostics(path: string, scan: MarkdownScan, frontMatter: FrontMatter): Diagnostic[] {
  const diagnostics = frontMatterDiagnostics(path, frontMatter.problems);
  const warn = (rule: Diagnostic["rule"], code: string, about: { message: string; line: number }): void => {
    diagnostics.push({ severity: "warning", rule, code, message: about.message, path, line: about.line });
  };
  if (scan.text.trim() === "") warn("structure", "empty_file", { message: "This file is empty.", line: 1 });
  diagnostics.push(...unclosedDiagnostics(scan, path));
  const hidden = scan.text.search(bidirectional);
  if (hidden !== -1) {
    const message = "This line has a character that reorders displayed text; kit removes it from titles.";
    warn("encoding", "bidi_control", { message, line: lineAt(scan, hidden) });
  }
  return diagnostics;
}

/** The 1-based line of an offset. */
function lineAt(scan: MarkdownScan, offset: number): number {
  let low = 0;
  let high = scan.lineCount;
  while (low + 1 < high) {
    const middle = (low + high) >> 1;
    if ((scan.starts[middle] ?? 0) <= offset) low = middle;
    else high = middle;
  }
  return low + 1;
}
