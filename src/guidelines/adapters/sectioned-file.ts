import { type FrontMatter, readFrontMatter } from "../../specs/markdown/front-matter.ts";
import {
  type Heading,
  lineKinds,
  lineText,
  type MarkdownScan,
  scanMarkdown,
  textOfLines,
} from "../../specs/markdown/scan-markdown.ts";
import { withoutBlankEdges } from "../../specs/markdown/sections.ts";
import type { GuidelineDraft, ParsedGuidelines } from "../adapter.ts";
import { findSealed, type SealedStretch } from "../convert/sealed-content.ts";
import { importsIn } from "../guideline-imports.ts";
import { readPatternLine } from "../match/pattern-line.ts";
import { isInside, managedLines, managedPartOf } from "../sync/managed-part.ts";
import { cleanTitle, textDiagnostics } from "../text-diagnostics.ts";
import { type Declared, type FileKind, titledBody, toContent } from "./whole-file.ts";

/** A stretch of a sectioned file: what is before the first section, or a heading with its text. */
interface Chunk {
  readonly heading?: Heading;
  readonly from: number;
  readonly to: number;
}

/**
 * A file with a guideline per second-level section. Text before the first section is a guideline of
 * its own unless it is blank, and so is text under a later first-level heading. A file without
 * second-level sections is one guideline.
 */
export function parseSectionedFile(
  source: { readonly path: string; readonly text: string },
  kind: FileKind,
  declare: (frontMatter: FrontMatter) => Declared = always,
): ParsedGuidelines {
  const sealed = findSealed(source.text);
  const scanned = { ...scanMarkdown(sealed.masked), text: source.text };
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
    if (!isSection && !saysSomething(scan, chunk, headingLines)) continue;
    const { title, content, globs } = contentOf(scan, chunk, sealed.stretches);
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
      ...(isInside(managed, span.start_line) && { managed: managed.source }),
    });
  }
  return { drafts, diagnostics: [...diagnostics, ...(declared.diagnostics ?? [])] };
}

function always(): Declared {
  return { inclusion: "always", globs: [], tags: [] };
}

/** `marks` are lines of comments that belong to no section and end the one before them. */
function chunksOf(scan: MarkdownScan, marks: readonly number[]): Chunk[] {
  let hasSection = false;
  const headings = scan.headings.filter((heading) => {
    hasSection ||= heading.level === 2;
    return hasSection && heading.level <= 2;
  });
  const borders: readonly { line: number; end_line: number; heading?: Heading }[] = [
    ...headings.map((heading) => ({ line: heading.line, end_line: heading.end_line, heading })),
    ...marks.map((line) => ({ line, end_line: line })),
  ].sort((one, other) => one.line - other.line);
  const chunks: Chunk[] = [{ from: scan.bodyLine, to: (borders[0]?.line ?? scan.lineCount + 1) - 1 }];
  for (const [index, { heading, end_line }] of borders.entries()) {
    chunks.push({
      ...(heading !== undefined && { heading }),
      from: end_line + 1,
      to: (borders[index + 1]?.line ?? scan.lineCount + 1) - 1,
    });
  }
  return chunks;
}

/** Whether a chunk holds more than headings, rules, comments and blank lines. */
function saysSomething(scan: MarkdownScan, chunk: Chunk, headingLines: ReadonlySet<number>): boolean {
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
): { title?: string; content: string; globs?: string[] } {
  if (chunk.heading === undefined) return titledBody(scan, chunk);
  const title = chunk.heading.title;
  let { from, to } = withoutBlankEdges(scan, chunk.from, chunk.to);
  const globs = from <= to ? readPatternLine(lineText(scan, from)) : undefined;
  if (globs !== undefined) ({ from, to } = withoutBlankEdges(scan, from + 1, to));
  const stretch = stretches.get(from);
  const text = stretch?.close === to ? textOfLines(scan, from + 1, to - 1) : textOfLines(scan, from, to);
  return { title, content: toContent(text), ...(globs !== undefined && { globs }) };
}

/** From the heading to the last line that is not blank; all lines where the file is one guideline. */
function spanOf(scan: MarkdownScan, chunk: Chunk, isWhole: boolean): GuidelineDraft["span"] {
  if (isWhole) return { start_line: 1, end_line: scan.lineCount };
  const { from, to } = withoutBlankEdges(scan, chunk.heading?.line ?? chunk.from, chunk.to);
  return { start_line: from, end_line: to };
}
