import type { Segment, Token } from "./glob-segments.ts";

/** Matches from the left, going back only to the last globstar: an earlier one need not move. */
export function matchSegments(segments: readonly Segment[], parts: readonly string[]): boolean {
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
