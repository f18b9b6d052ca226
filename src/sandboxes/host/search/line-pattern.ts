import { KitError } from "../../../base/kit-error.ts";

/** A pattern to look for in lines. */
export interface LinePattern {
  /** False when no line of the text matches; true when one may. */
  mayMatch(text: string): boolean;
  /** Where a line matches first; -1 when it does not. */
  indexIn(line: string): number;
}

/** More is not a pattern but a program. */
const maxPatternLength = 1_000;
/** Instructions of the compiled program: each costs time for every character, at worst. */
const maxProgramSize = 1_000;
/** Of a longer line, the beginning is matched against an expression; a plain text is found anywhere. */
export const maxMatchedLength = 10_000;

/**
 * Compiles a pattern of RE2 syntax, which is matched in linear time. Throws `invalid_request`, with
 * what is wrong, for one that is not valid.
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
  // With `^` and `$` at every line, a text of many lines matches wherever one of them does, unless the
  // pattern asks for the beginning or end of the whole text.
  const asksForEnds = /\\[Az]|\(\?[a-zA-Z]*-/.test(pattern);
  return {
    mayMatch: (text) => asksForEnds || expression.test(text),
    indexIn(line) {
      const matched = line.length > maxMatchedLength ? line.slice(0, maxMatchedLength) : line;
      if (!expression.test(matched)) return -1;
      // Where it begins matters only for lines that are too long to show.
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
    hint: "It is a regular expression of RE2 syntax: no look-around, no back-references.",
    cause,
  });
}
