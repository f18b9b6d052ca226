import { lineText, type MarkdownScan } from "../../specs/markdown/scan-markdown.ts";
import type { GuidelineRecord } from "../guideline-record.ts";

/** The lines of a guideline that say something, as they are compared, with their 1-based lines in the file. */
export type TextLines = readonly { readonly text: string; readonly line: number }[];

/** The lines of a guideline's content; with the scan of its file, under their own line numbers. */
export function textLinesOf(record: GuidelineRecord, scan: MarkdownScan | undefined): TextLines {
  const lines = record.content.split(/\r\n?|\n/);
  const first = firstLineOf(record, lines[0] ?? "", scan);
  return lines.flatMap((line, index) => {
    const text = comparedText(line);
    return text === "" ? [] : [{ text, line: first + index }];
  });
}

function firstLineOf(record: GuidelineRecord, firstLine: string, scan: MarkdownScan | undefined): number {
  const { start_line, end_line } = record.span;
  for (let line = start_line; scan !== undefined && line <= Math.min(end_line, scan.lineCount); line += 1)
    if (lineText(scan, line) === firstLine && line >= scan.bodyLine) return line;
  return start_line;
}

const toolNames =
  /(?<![a-z0-9])(?:(?:github )?copilot|claude(?: code)?|gemini(?: cli)?|roo(?: code)?|cursor|kiro|windsurf|cline|codex|trae|zed)(?![a-z0-9])/g;
const ruleFolders =
  /\.(?:cursor\/rules|kiro\/steering|clinerules|windsurf\/rules|github\/instructions|claude\/rules|roo\/rules|trae\/rules)\b/g;

/** A line without what is adapted for another tool: its name, its folder, its file endings, how it names another file. */
function comparedText(line: string): string {
  return line
    .slice(0, 2_000)
    .toLowerCase()
    .replace(/\[([^[\]]*)\]\([^()\s]*\)/g, "$1")
    .replace(/@(?=`)/g, "")
    .replace(ruleFolders, "<rules>")
    .replace(toolNames, "<tool>")
    .replace(/\.(?:instructions\.md|mdc)\b/g, ".md")
    .replace(/\s+/g, " ")
    .trim();
}

export interface Drift {
  /** How many lines the two texts do not share, and how many the longer one has. */
  readonly changed: number;
  readonly total: number;
  /** The first line that the other text lacks; where there is none, the last line. */
  readonly line: number;
  readonly otherLine: number;
}

/** Texts that share less of their lines are not copies. */
const minShared = 0.7;
const minSharedLines = 4;

/**
 * Where two copies of a text differ; undefined for texts that agree, that are no copies, or of which one is the beginning of the
 * other: that is a summary, or a text that was continued. Linear in the lines.
 */
export function compareCopies(one: TextLines, other: TextLines): Drift | undefined {
  const total = Math.max(one.length, other.length);
  if (Math.min(one.length, other.length) < minShared * total) return undefined;
  const [first, second] = [linesWithout(one, other), linesWithout(other, one)];
  const changed = Math.max(first.length, second.length);
  const shared = total - changed;
  if (changed === 0 || shared < minSharedLines || shared < minShared * total) return undefined;
  if (isBeginning(one, other) || isBeginning(other, one)) return undefined;
  return {
    changed,
    total,
    line: (first[0] ?? lineBeside(second[0], one, other))?.line ?? 1,
    otherLine: (second[0] ?? lineBeside(first[0], other, one))?.line ?? 1,
  };
}

/** The lines of a text that another one has not, or has less often. */
function linesWithout(lines: TextLines, others: TextLines): TextLines {
  const counts = new Map<string, number>();
  for (const { text } of others) counts.set(text, (counts.get(text) ?? 0) + 1);
  return lines.filter(({ text }) => {
    const left = counts.get(text) ?? 0;
    counts.set(text, left - 1);
    return left <= 0;
  });
}

/** The line of a text at which it lacks a line of the other: where the one before that stands. */
function lineBeside(
  missing: TextLines[number] | undefined,
  lines: TextLines,
  others: TextLines,
): TextLines[number] | undefined {
  const before = missing && others[others.indexOf(missing) - 1];
  return lines.find(({ text }) => text === before?.text) ?? lines[0];
}

function isBeginning(short: TextLines, long: TextLines): boolean {
  return short.length < long.length && short.every(({ text }, index) => text === long[index]?.text);
}
