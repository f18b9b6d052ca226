import { splitLines } from "../specs/markdown/characters.ts";
import { ruleIdOf } from "./guideline-record.ts";
import { readGuidelines } from "./read-guidelines.ts";

/** A part of a rule file. */
export interface RulePart {
  /** As `ruleIdOf` gives it. */
  readonly id: string;
  /** From 1. */
  readonly line: number;
  readonly text: string;
}

/** Splits the text of a rule file before each of its rules. The parts in their order are the text. */
export function splitRules(path: string, text: string): readonly RulePart[] {
  const { starts } = splitLines(text);
  const begun = readGuidelines({ path, text }).records.map((record) => {
    const line = record.span.start_line;
    return { id: ruleIdOf(record), line, at: starts[line - 1] ?? 0 };
  });
  // A title without a text of its own is no rule, and belongs to the file.
  if (begun[0]?.at !== 0) begun.unshift({ id: path, line: 1, at: 0 });
  return begun.map(({ id, line, at }, index) => ({ id, line, text: text.slice(at, begun[index + 1]?.at) }));
}
