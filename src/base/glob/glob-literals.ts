import type { Segment } from "./glob-segments.ts";

type Pattern = readonly Segment[];

/** Texts that are in every path that matches one of some patterns; cheaper to look for than a match. */
export interface GlobLiterals {
  readonly prefix: string;
  readonly suffix: string;
  readonly needle: string;
  /** Names of folders or files that every matching path has among its own. */
  readonly names: readonly string[];
}

export function literalsOf(patterns: readonly Pattern[]): GlobLiterals {
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
