import { expandBraces, maxBraceExpansions } from "./expand-braces.ts";
import { type GlobLiterals, literalsOf } from "./glob-literals.ts";
import { globSegments, type Segment } from "./glob-segments.ts";
import { matchSegments } from "./match-segments.ts";

// Globs come from files of strangers, and regular expressions made from them (picomatch, minimatch)
// take exponential time on patterns such as `*a*a*a*a*b`. This matcher takes time in proportion to
// pattern times path, at worst. A property test holds it equal to picomatch where both can go.

/** A compiled glob; paths are relative to its scope. */
export interface Glob extends GlobLiterals {
  readonly source: string;
  /** Why it can match nothing, where that is sure: to be said to the author. */
  readonly invalid?: string;
  matches(path: string): boolean;
}

/** A glob longer than this, in UTF-16 units, matches nothing. */
const maxGlobLength = 1024;
/** Braces that expand to more text than this match nothing. */
const maxExpandedLength = 16_384;

/**
 * Compiles a glob: `*` and `?` stay within one folder, `**` spans any number of them, `{a,b}` is
 * either, `[a-z]` one character, `\` takes the next character as it is. Everything else is text;
 * extended globs (`*(a|b)`) and negation are not part of any tool's meaning. Hidden files count.
 *
 * @example
 * ```ts
 * import { compileGlob } from "kit/guidelines";
 *
 * console.log(compileGlob("src/*.{ts,tsx}").matches("src/total.ts")); // true
 * ```
 */
export function compileGlob(source: string): Glob {
  if (source.length > maxGlobLength)
    return invalidGlob(source, `it is longer than ${maxGlobLength} characters`);
  const expanded = expandBraces(source);
  if (expanded === undefined || expanded.reduce((sum, glob) => sum + glob.length, 0) > maxExpandedLength)
    return invalidGlob(source, `its braces stand for more than ${maxBraceExpansions} globs`);
  const patterns: (readonly Segment[])[] = [];
  for (const glob of expanded) {
    const segments = globSegments(glob);
    if (typeof segments === "string") return invalidGlob(source, segments);
    patterns.push(segments);
  }
  const literals = literalsOf(patterns);
  const { prefix, suffix, needle } = literals;
  return {
    source,
    ...literals,
    matches(path) {
      if (!path.startsWith(prefix) || !path.endsWith(suffix) || !path.includes(needle)) return false;
      const names = path.split("/");
      return patterns.some((segments) => matchSegments(segments, names));
    },
  };
}

function invalidGlob(source: string, invalid: string): Glob {
  return { source, invalid, prefix: "", suffix: "", needle: "", names: [], matches: () => false };
}
