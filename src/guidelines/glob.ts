import { expandBraces, maxBraceExpansions } from "./expand-braces.ts";

// Globs come from files of strangers, and regular expressions made from them (picomatch, minimatch)
// take exponential time on patterns such as `*a*a*a*a*b`. This matcher takes time in proportion to
// pattern times path, at worst. A property test holds it equal to picomatch where both can go.

/** A compiled glob; paths are relative to its scope. */
export interface Glob {
  readonly source: string;
  /** Why it can match nothing, where that is sure: to be said to the author. */
  readonly invalid?: string;
  /** Every matching path begins and ends with these, and holds the third. */
  readonly prefix: string;
  readonly suffix: string;
  readonly needle: string;
  /** Names of folders or files that every matching path has among its own. */
  readonly names: readonly string[];
  matches(path: string): boolean;
}

/** A glob longer than this, in UTF-16 units, matches nothing. */
export const maxGlobLength = 1024;
/** Braces that expand to more text than this match nothing. */
const maxExpandedLength = 16_384;

type Token = { readonly kind: "text"; readonly text: string } | { readonly kind: "star" } | Single;
/** One character: any (`?`) or one of a class. */
interface Single {
  readonly kind: "one";
  accepts(character: string): boolean;
}
/** A folder or file name of a pattern, or "globstar" for any number of folders. */
type Segment = "globstar" | readonly Token[];

const never = { prefix: "", suffix: "", needle: "", names: [], matches: () => false };

/**
 * Compiles a glob: `*` and `?` stay within one folder, `**` spans any number of them, `{a,b}` is
 * either, `[a-z]` one character, `\` takes the next character as it is. Everything else is text;
 * extended globs (`*(a|b)`) and negation are not part of any tool's meaning. Hidden files count.
 */
export function compileGlob(source: string): Glob {
  if (source.length > maxGlobLength)
    return { source, ...never, invalid: `it is longer than ${maxGlobLength} characters` };
  const expanded = expandBraces(source);
  if (expanded === undefined || expanded.reduce((sum, glob) => sum + glob.length, 0) > maxExpandedLength)
    return { source, ...never, invalid: `its braces stand for more than ${maxBraceExpansions} globs` };
  const patterns: (readonly Segment[])[] = [];
  for (const glob of expanded) {
    const segments = segmentsOf(glob);
    if (typeof segments === "string") return { source, ...never, invalid: segments };
    patterns.push(segments);
  }
  const prefix = commonStart(patterns.map(literalPrefix));
  const suffix = reversed(commonStart(patterns.map((pattern) => reversed(literalSuffix(pattern)))));
  const needle = commonNeedle(patterns);
  return {
    source,
    prefix,
    suffix,
    needle,
    names: commonNames(patterns),
    matches(path) {
      if (!path.startsWith(prefix) || !path.endsWith(suffix) || !path.includes(needle)) return false;
      const parts = path.split("/");
      return patterns.some((segments) => matchSegments(segments, parts));
    },
  };
}

/** The segments of a glob without braces, or why it matches nothing. */
function segmentsOf(glob: string): Segment[] | string {
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

function literalPrefix(segments: readonly Segment[]): string {
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

function literalSuffix(segments: readonly Segment[]): string {
  const last = segments.at(-1);
  const token = last === undefined || last === "globstar" ? undefined : last.at(-1);
  return token?.kind === "text" ? token.text : "";
}

/** The longest text of one pattern that all of them hold. */
function commonNeedle(patterns: readonly (readonly Segment[])[]): string {
  const [first = [], ...others] = patterns.map(literals);
  const shared = first.filter((text) => others.every((texts) => texts.some((other) => other.includes(text))));
  return shared.reduce((longest, text) => (text.length > longest.length ? text : longest), "");
}

function commonNames(patterns: readonly (readonly Segment[])[]): string[] {
  const [first = [], ...others] = patterns.map((segments) =>
    segments.flatMap((segment) => {
      const [only, ...more] = segment === "globstar" ? [] : segment;
      return only?.kind === "text" && more.length === 0 ? [only.text] : [];
    }),
  );
  return first.filter((name) => others.every((names) => names.includes(name)));
}

function literals(segments: readonly Segment[]): string[] {
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
