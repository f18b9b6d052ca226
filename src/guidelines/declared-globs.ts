import { splitOutsideBraces } from "../specs/markdown/split-outside-braces.ts";

/**
 * The globs that a front matter value declares, as they are spelled: a list, a string, or a string
 * with several globs between commas (Cursor, Claude Code). Quotes around each one are not part of it.
 */
export function declaredGlobs(value: unknown, options: { readonly splitCommas: boolean }): string[] {
  if (Array.isArray(value)) return value.filter(isText).map(unquoted).filter(isSomething);
  if (!isText(value)) return [];
  const parts = options.splitCommas ? splitOutsideBraces(value) : [value];
  return parts.map(unquoted).filter(isSomething);
}

function isText(value: unknown): value is string {
  return typeof value === "string";
}

function isSomething(text: string): boolean {
  return text !== "";
}

function unquoted(text: string): string {
  const trimmed = text.trim();
  return /^(["']).*\1$/s.test(trimmed) && trimmed.length > 1 ? trimmed.slice(1, -1).trim() : trimmed;
}
