import { type LinePattern, maxMatchedLength } from "./line-pattern.ts";
import type { Pace } from "./pace.ts";

export interface LineMatch {
  /** From 1. */
  readonly line: number;
  readonly text: string;
}

/** Longer lines are shown around the place that matches. */
const maxShownLength = 500;

/**
 * The lines of a text that match. Most texts match nowhere, which one look at many lines tells; how
 * many depends on how long the pattern takes, so that a slow one does not hold up others for long.
 */
export async function* scanLines(
  text: string,
  pattern: LinePattern,
  pace: Pace,
): AsyncGenerator<LineMatch, void, void> {
  let size = 4_096;
  let line = 1;
  for (let from = 0; from < text.length && !pace.isOver(); ) {
    const to = endOfLine(text, Math.min(from + size, text.length) - 1);
    const started = performance.now();
    const chunk = text.slice(from, to);
    // A line that makes the text much longer than was meant is cut before it is matched.
    if (chunk.length > size + maxMatchedLength || pattern.mayMatch(chunk)) {
      const lines = chunk.split("\n");
      for (const [index, content] of lines.entries()) {
        const at = pattern.indexIn(content);
        if (at !== -1) yield { line: line + index, text: shorten(content, at) };
        const rest = pace.pause();
        if (rest !== undefined) await rest;
        if (pace.isOver()) return;
      }
    }
    line += countLines(chunk);
    from = to;
    size = performance.now() - started < 2 ? Math.min(size * 2, 1 << 20) : Math.max(size / 2, 1_024);
    const rest = pace.pause();
    if (rest !== undefined) await rest;
  }
}

function endOfLine(text: string, from: number): number {
  const newline = text.indexOf("\n", from);
  return newline === -1 ? text.length : newline + 1;
}

function countLines(text: string): number {
  let count = 0;
  for (let at = text.indexOf("\n"); at !== -1; at = text.indexOf("\n", at + 1)) count += 1;
  return count;
}

function shorten(line: string, at: number): string {
  if (line.length <= maxShownLength) return line;
  const from = Math.max(0, Math.min(at - 100, line.length - maxShownLength));
  const to = from + maxShownLength;
  return `${from > 0 ? "…" : ""}${line.slice(from, to)}${to < line.length ? "…" : ""}`;
}
