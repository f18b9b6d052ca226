import { splitOutsideBraces } from "../../specs/markdown/characters.ts";
import type { GuidelineTool } from "../adapter.ts";

/**
 * Whether a string is several globs between commas. In all else the tools agree: globs are relative to
 * the folder of their scope, `*` stays within a folder, `**` spans any, braces expand, and a bracket
 * that is never closed matches nothing.
 */
const splitsCommas: Readonly<Record<GuidelineTool, boolean>> = {
  claude: true,
  cursor: true,
  // In Kiro a comma is part of the pattern: several patterns are a list.
  kiro: false,
  agents: false,
  copilot: true,
  gemini: false,
  windsurf: true,
  cline: true,
  zed: false,
};

/**
 * The globs that a front matter value declares, as they are spelled: a list, or a string. Quotes
 * around each one are not part of it.
 */
export function declaredGlobs(value: unknown, tool: GuidelineTool): string[] {
  if (Array.isArray(value)) return value.filter(isText).map(unquoted).filter(isSomething);
  if (!isText(value)) return [];
  const parts = splitsCommas[tool] ? splitOutsideBraces(value) : [value];
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
