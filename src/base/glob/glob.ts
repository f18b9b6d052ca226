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

/** Braces that stand for more globs than this are not expanded. */
const maxBraceExpansions = 256;

/** The globs that braces stand for, in order, or nothing when there are too many. */
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

/** The parts of the group that opens at `open`; nothing where it does not close or has one part. */
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

/** Texts that are in every path that matches one of some patterns; cheaper to look for than a match. */
interface GlobLiterals {
  readonly prefix: string;
  readonly suffix: string;
  readonly needle: string;
  /** Names of folders or files that every matching path has among its own. */
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

/** A piece of a name in a pattern. */
export type Token = { readonly kind: "text"; readonly text: string } | { readonly kind: "star" } | Single;
/** One character: any (`?`) or one of a class. */
interface Single {
  readonly kind: "one";
  accepts(character: string): boolean;
}
/** A folder or file name of a pattern, or "globstar" for any number of folders. */
export type Segment = "globstar" | readonly Token[];

/** The segments of a glob without braces, or why it matches nothing. */
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
      const found = characterClass(part, index);
      if (found === undefined) return "its bracket is never closed";
      flush();
      tokens.push({ kind: "one", accepts: found.accepts });
      index = found.end;
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
      const accepts = (given: string): boolean =>
        ranges.some(([low, high]) => given >= low && given <= high) !== negated;
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

/** Matches from the left, going back only to the last globstar: an earlier one need not move. */
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

/** The same within a name, for stars. */
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
