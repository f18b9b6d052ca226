import type { SpecBlock } from "../../protocol/spec-block.ts";
import type { SpecSource } from "../adapter.ts";
import { lineKinds, lineText, type MarkdownScan, scanMarkdown } from "../markdown/scan-markdown.ts";

export interface ExportedSource {
  readonly source: SpecSource;
  /** The blocks that were read from it. */
  readonly blocks: readonly Pick<SpecBlock, "metadata">[];
  /** The text that an export writes in its place; absent where it writes blocks alone, as JSON does. */
  readonly written?: string;
}

/** More parts of a file than these are only counted. */
const mostParts = 3;

/**
 * Reports the text of a Markdown file that an export leaves out because it is in no block, such as an introduction or a glossary:
 * one sentence with its lines; `undefined` if there is no such text. Lines that the export writes anyway do not count.
 */
export function textOutsideBlocks({ source, blocks, written = "" }: ExportedSource): string | undefined {
  if (!/\.(?:md|mdc)$/.test(source.path)) return undefined;
  const scan = scanMarkdown(source.text);
  const writtenLines = new Set(written.split(/\r\n|\n|\r/).map((line) => line.trim()));
  const covered = new Uint8Array(scan.lineCount + 1);
  for (const { metadata } of blocks) {
    const span = metadata.source;
    if (span !== undefined) covered.fill(1, span.start_line, span.end_line + 1);
  }
  const parts: { from: number; to: number; heading: string }[] = [];
  let lost = 0;
  for (let line = scan.bodyLine; line <= scan.lineCount; line += 1) {
    if (covered[line] === 1 || isMarkup(scan, line)) continue;
    const text = lineText(scan, line).trim();
    if (text === "" || writtenLines.has(text)) continue;
    lost += 1;
    const last = parts.at(-1);
    const heading = headingAbove(scan, line);
    if (last !== undefined && last.heading === heading && !isBroken(covered, last.to, line)) last.to = line;
    else parts.push({ from: line, to: line, heading });
  }
  if (lost === 0) return undefined;
  if (blocks.length === 0) return `${source.path}: no spec was read from it, so nothing of it is exported.`;
  const listed = parts.slice(0, mostParts).map(({ from, to, heading }) => {
    const lines = from === to ? `${from}` : `${from}–${to}`;
    return heading === "" ? lines : `${lines} (${heading})`;
  });
  const more = parts.length > mostParts ? ` and ${parts.length - mostParts} more` : "";
  const verb = lost === 1 ? "line outside of specs is" : "lines outside of specs are";
  return `${source.path}: ${lost} ${verb} left out: ${listed.join(", ")}${more}.`;
}

/** Headings and rules order a text; comments are no part of it. */
function isMarkup(scan: MarkdownScan, line: number): boolean {
  if (scan.kinds[line - 1] === lineKinds.comment) return true;
  if (scan.kinds[line - 1] !== lineKinds.prose) return false;
  return /^\s*(?:#{1,6}(?:\s|$)|(?:-{3,}|\*{3,}|_{3,}|={3,})\s*$)/.test(lineText(scan, line));
}

function isBroken(covered: Uint8Array, from: number, to: number): boolean {
  for (let line = from; line < to; line += 1) if (covered[line] === 1) return true;
  return false;
}

function headingAbove(scan: MarkdownScan, line: number): string {
  let low = 0;
  let high = scan.headings.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((scan.headings[middle]?.line ?? 0) <= line) low = middle + 1;
    else high = middle;
  }
  return (scan.headings[low - 1]?.title ?? "").slice(0, 60);
}
