// Globs come from files that kit does not trust, and regular expressions made from them (picomatch, minimatch)
// take exponential time on patterns such as `*a*a*a*a*b`. This matcher takes at most time in proportion to
// the length of the pattern times that of the path. A property test compares it with picomatch.

/** A compiled glob; paths are relative to its scope. */
export interface Glob extends GlobLiterals {
  readonly source: string;
  /** Why the glob can never match a path, as a text for its author. */
  readonly invalid?: string;
  matches(path: string): boolean;
}

/** A glob longer than this, in UTF-16 units, matches nothing. */
const maxGlobLength = 1024;
/** Braces that expand to more text than this match nothing. */
const maxExpandedLength = 16_384;

/**
 * Compiles a glob: `*` and `?` match within one folder, `**` matches any number of folders, `{a,b}` matches
 * either text, `[a-z]` one character, and `\` escapes the next character. All other characters are text; extended
 * globs (`*(a|b)`) and negation are not supported. A glob also matches hidden files.
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
    return invalidGlob(source, `its braces expand to more than ${maxBraceExpansions} globs`);
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

/** Braces that expand to more globs than this make a glob invalid. */
const maxBraceExpansions = 256;

/** Expands the braces of a glob, in order; `undefined` if there are too many globs. */
export function expandBraces(source: string): string[] | undefined {
  let done: string[] = [""];
  let text = "";
  for (let index = 0; index < source.length; index += 1) {
    const character = source[index] ?? "";
    if (character === "\\") {
      text += source.slice(index, index + 2);
      index += 1;
      continue;
    }
    const group = character === "{" ? braceGroup(source, index) : undefined;
    if (group === undefined) {
      text += character;
      continue;
    }
    const options: string[] = [];
    for (const part of group.parts) {
      const inner = expandBraces(part);
      if (inner === undefined || options.length + inner.length > maxBraceExpansions) return undefined;
      options.push(...inner);
    }
    if (done.length * options.length > maxBraceExpansions) return undefined;
    const before = text;
    done = done.flatMap((start) => options.map((option) => start + before + option));
    text = "";
    index = group.end;
  }
  return done.map((start) => start + text);
}

/** Returns the parts of the group that opens at `open`; `undefined` if it does not close or has only one part. */
function braceGroup(source: string, open: number): { parts: string[]; end: number } | undefined {
  const parts: string[] = [];
  let depth = 0;
  let start = open + 1;
  for (let index = open; index < source.length; index += 1) {
    const character = source[index];
    if (character === "\\") index += 1;
    else if (character === "{") depth += 1;
    else if (character === "," && depth === 1) {
      parts.push(source.slice(start, index));
      start = index + 1;
    } else if (character === "}") {
      depth -= 1;
      if (depth > 0) continue;
      parts.push(source.slice(start, index));
      return parts.length > 1 ? { parts, end: index } : undefined;
    }
  }
  return undefined;
}

type Pattern = readonly Segment[];

/** Texts that every matching path contains: looking for them is cheaper than matching. */
interface GlobLiterals {
  readonly prefix: string;
  readonly suffix: string;
  readonly needle: string;
  /** Names of folders or files that every matching path contains. */
  readonly names: readonly string[];
}

function literalsOf(patterns: readonly Pattern[]): GlobLiterals {
  return {
    prefix: commonStart(patterns.map(literalPrefix)),
    suffix: reversed(commonStart(patterns.map((pattern) => reversed(literalSuffix(pattern))))),
    needle: commonNeedle(patterns),
    names: commonNames(patterns),
  };
}

function literalPrefix(segments: Pattern): string {
  let prefix = "";
  for (const [index, segment] of segments.entries()) {
    if (segment === "globstar") return prefix;
    const [first] = segment;
    const isLiteral = segment.length === 1 && first?.kind === "text";
    if (first?.kind === "text") prefix += first.text;
    if (!isLiteral) return prefix;
    if (index < segments.length - 1) prefix += "/";
  }
  return prefix;
}

function literalSuffix(segments: Pattern): string {
  const last = segments.at(-1);
  const token = last === undefined || last === "globstar" ? undefined : last.at(-1);
  return token?.kind === "text" ? token.text : "";
}

/** The longest text of one pattern that all of them hold. */
function commonNeedle(patterns: readonly Pattern[]): string {
  const [first = [], ...others] = patterns.map(literals);
  const shared = first.filter((text) => others.every((texts) => texts.some((other) => other.includes(text))));
  return shared.reduce((longest, text) => (text.length > longest.length ? text : longest), "");
}

function commonNames(patterns: readonly Pattern[]): string[] {
  const [first = [], ...others] = patterns.map((segments) =>
    segments.flatMap((segment) => {
      const [only, ...more] = segment === "globstar" ? [] : segment;
      return only?.kind === "text" && more.length === 0 ? [only.text] : [];
    }),
  );
  return first.filter((name) => others.every((names) => names.includes(name)));
}

function literals(segments: Pattern): string[] {
  const texts: string[] = [];
  for (const segment of segments) {
    if (segment === "globstar") continue;
    for (const token of segment) if (token.kind === "text") texts.push(token.text);
  }
  return texts;
}

function commonStart(texts: readonly string[]): string {
  const [first = ""] = texts;
  let length = first.length;
  for (const text of texts) {
    let same = 0;
    while (same < length && text[same] === first[same]) same += 1;
    length = same;
  }
  return first.slice(0, length);
}

function reversed(text: string): string {
  return text.split("").reverse().join("");
}

/** A part of a name in a pattern. */
export type Token = { readonly kind: "text"; readonly text: string } | { readonly kind: "star" } | Single;
/** One character: any (`?`) or one of a class. */
interface Single {
  readonly kind: "one";
  accepts(character: string): boolean;
}
/** A folder or file name of a pattern, or "globstar" for any number of folders. */
export type Segment = "globstar" | readonly Token[];

/** Splits a glob without braces into segments; returns a text if the glob can never match. */
function globSegments(glob: string): Segment[] | string {
  const path = glob.replace(/^(?:\.\/)+/, "").replace(/^\//, "");
  if (path === "") return "it is empty";
  if (path.endsWith("/")) return "it names a folder, and only files are matched";
  const segments: Segment[] = [];
  for (const part of path.split("/")) {
    if (part === "." || part === "..") return "it leaves its folder";
    if (part === "**") {
      if (segments.at(-1) !== "globstar") segments.push("globstar");
      continue;
    }
    const tokens = tokensOf(part);
    if (typeof tokens === "string") return tokens;
    segments.push(tokens);
  }
  // A globstar at the end means everything below, not the folder itself.
  if (segments.at(-1) === "globstar") segments.push([{ kind: "star" }]);
  return segments;
}

function tokensOf(part: string): Token[] | string {
  const tokens: Token[] = [];
  let text = "";
  const flush = (): void => {
    if (text !== "") tokens.push({ kind: "text", text });
    text = "";
  };
  for (let index = 0; index < part.length; index += 1) {
    const character = part[index] ?? "";
    if (character === "\\") {
      index += 1;
      text += part[index] ?? "\\";
    } else if (character === "*") {
      flush();
      if (tokens.at(-1)?.kind !== "star") tokens.push({ kind: "star" });
    } else if (character === "?") {
      flush();
      tokens.push({ kind: "one", accepts: () => true });
    } else if (character === "[") {
      const characters = characterClass(part, index);
      if (characters === undefined) return "its bracket is never closed";
      flush();
      tokens.push({ kind: "one", accepts: characters.accepts });
      index = characters.end;
    } else text += character;
  }
  flush();
  return tokens;
}

function characterClass(part: string, open: number): (Pick<Single, "accepts"> & { end: number }) | undefined {
  const negated = part[open + 1] === "!" || part[open + 1] === "^";
  const first = open + (negated ? 2 : 1);
  const ranges: (readonly [string, string])[] = [];
  for (let index = first; index < part.length; index += 1) {
    let character = part[index] ?? "";
    if (character === "]" && index > first) {
      const accepts = (candidate: string): boolean =>
        ranges.some(([low, high]) => candidate >= low && candidate <= high) !== negated;
      return { accepts, end: index };
    }
    if (character === "\\") {
      index += 1;
      character = part[index] ?? "\\";
    }
    const high = part[index + 1] === "-" ? part[index + 2] : undefined;
    if (high !== undefined && high !== "]") {
      ranges.push([character, high]);
      index += 2;
    } else ranges.push([character, character]);
  }
  return undefined;
}

/** Matches from the left and backtracks to the last globstar only: an earlier one need not match more folders. */
function matchSegments(segments: readonly Segment[], parts: readonly string[]): boolean {
  let segment = 0;
  let part = 0;
  let star = -1;
  let resume = 0;
  while (part < parts.length) {
    const current = segments[segment];
    if (current === "globstar") {
      star = segment;
      resume = part;
      segment += 1;
    } else if (current !== undefined && matchTokens(current, parts[part] ?? "")) {
      segment += 1;
      part += 1;
    } else if (star !== -1) {
      resume += 1;
      part = resume;
      segment = star + 1;
    } else return false;
  }
  return segment === segments.length;
}

/** Matches one name in the same way: it backtracks to the last star only. */
function matchTokens(tokens: readonly Token[], name: string): boolean {
  let token = 0;
  let at = 0;
  let star = -1;
  let resume = 0;
  while (at < name.length) {
    const current = tokens[token];
    if (current?.kind === "star") {
      if (token === tokens.length - 1) return true;
      star = token;
      resume = at;
      token += 1;
    } else if (current?.kind === "text" && name.startsWith(current.text, at)) {
      at += current.text.length;
      token += 1;
    } else if (current?.kind === "one" && current.accepts(name[at] ?? "")) {
      at += 1;
      token += 1;
    } else if (star !== -1) {
      resume += 1;
      at = resume;
      token = star + 1;
    } else return false;
  }
  while (tokens[token]?.kind === "star") token += 1;
  return token === tokens.length;
}
