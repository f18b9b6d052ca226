import { RE2JS } from "re2js";

/** A regular expression that is matched in time linear in the text. */
export interface LinearPattern {
  /** Instructions of the program: each may cost a step for every character. */
  readonly size: number;
  matches(text: string): boolean;
}

const maxSize = 5_000;
const maxCached = 1_000;
const compiled = new Map<string, LinearPattern | undefined>();

/**
 * Compiles a pattern as JSON Schema has them, which matches anywhere in a text; undefined for one that is not
 * valid or that no linear engine takes: look-around, back-references, enormous repetitions.
 */
export function linearPattern(pattern: string): LinearPattern | undefined {
  if (compiled.has(pattern)) return compiled.get(pattern);
  if (compiled.size >= maxCached) compiled.clear();
  const made = compile(pattern);
  compiled.set(pattern, made);
  return made;
}

function compile(pattern: string): LinearPattern | undefined {
  // The engine takes a reference by name for a letter.
  if (pattern.length > maxSize || pattern.includes("\\k<")) return undefined;
  try {
    const expression = RE2JS.compile(RE2JS.translateRegExp(pattern));
    const size = expression.programSize();
    return size > maxSize ? undefined : { size, matches: (text) => expression.test(text) };
  } catch {
    return undefined;
  }
}
