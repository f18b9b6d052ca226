import { setImmediate } from "node:timers/promises";
import { KitError } from "../../../base/kit-error.ts";

export interface LineMatch {
  /** Counted from 1. */
  readonly line: number;
  readonly text: string;
}

/** For a longer line, only the part around the match is returned. */
const maxShownLength = 500;

/**
 * Yields the lines of a text that match. Most texts have no match, so many lines are tested at once. Their
 * number adapts to the pattern's speed, so that a slow pattern does not block other work for long.
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
    // A very long line makes the chunk too long for one test, so match its lines one by one.
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

export interface LinePattern {
  /** Whether a line of the text can match; false is certain. */
  mayMatch(text: string): boolean;
  /** The index of the first match in a line; -1 if there is none. */
  indexIn(line: string): number;
}

const maxPatternLength = 1_000;
/** Instructions of the compiled pattern; at worst, each costs time for every character. */
const maxProgramSize = 1_000;
/** A regular expression is matched against this many characters of a line; plain text is found anywhere. */
const maxMatchedLength = 10_000;

/**
 * Compiles a pattern in RE2 syntax, which is matched in linear time. Throws `invalid_request` with the reason
 * if the pattern is not valid.
 *
 * @see https://github.com/google/re2/wiki/Syntax
 */
export async function compileLinePattern(pattern: string, ignoreCase: boolean): Promise<LinePattern> {
  if (pattern === "") throw invalidPattern("it is empty");
  if (pattern.length > maxPatternLength)
    throw invalidPattern(`it is longer than ${maxPatternLength} characters`);
  if (!ignoreCase && /^[^\\^$.|?*+()[\]{}\n]+$/.test(pattern)) {
    return { mayMatch: (text) => text.includes(pattern), indexIn: (line) => line.indexOf(pattern) };
  }
  const { RE2JS } = await import("re2js");
  let expression: InstanceType<typeof RE2JS>;
  try {
    expression = RE2JS.compile(pattern, RE2JS.MULTILINE | (ignoreCase ? RE2JS.CASE_INSENSITIVE : 0));
  } catch (cause) {
    const reason = cause instanceof Error ? cause.message.replace(/^error parsing regexp: /, "") : "";
    throw invalidPattern(reason, cause);
  }
  if (expression.programSize() > maxProgramSize) throw invalidPattern("its repetitions are too large");
  // In MULTILINE mode a text matches if one of its lines does, unless the pattern has anchors of the whole
  // text (`\A`, `\z`) or turns the mode off.
  const usesTextAnchors = /\\[Az]|\(\?[a-zA-Z]*-/.test(pattern);
  return {
    mayMatch: (text) => usesTextAnchors || expression.test(text),
    indexIn(line) {
      const matched = line.length > maxMatchedLength ? line.slice(0, maxMatchedLength) : line;
      if (!expression.test(matched)) return -1;
      // The position matters only for lines that `shorten` may cut.
      if (line.length <= 200) return 0;
      const matcher = expression.matcher(matched);
      return matcher.find() ? matcher.start() : -1;
    },
  };
}

function invalidPattern(reason: string, cause?: unknown): KitError {
  return new KitError({
    code: "invalid_request",
    message: `The pattern is not valid: ${reason}.`,
    hint: "Use RE2 syntax, which has no look-around and no back-references.",
    cause,
  });
}

/** Lets long synchronous work yield to other work, and limits its total time. */
export interface Pace {
  /** Call it often. Returns a promise only if it is time to yield; the promise rejects with the signal's reason. */
  pause(): Promise<void> | undefined;
  /** Whether the time budget of the whole work is used up. */
  isOver(): boolean;
}

const sliceMs = 8;

export function createPace(signal: AbortSignal | undefined, budgetMs: number): Pace {
  const end = performance.now() + budgetMs;
  let sliceEnd = performance.now() + sliceMs;
  const rest = async (): Promise<void> => {
    await setImmediate();
    signal?.throwIfAborted();
    sliceEnd = performance.now() + sliceMs;
  };
  signal?.throwIfAborted();
  return {
    pause: () => (performance.now() < sliceEnd ? undefined : rest()),
    isOver: () => performance.now() > end,
  };
}
