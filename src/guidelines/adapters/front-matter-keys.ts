import { suggest } from "../../base/error-text.ts";
import type { Diagnostic } from "../../protocol/diagnostic.ts";
import { type FrontMatter, type FrontMatterKeys, lineOfKey } from "../../specs/markdown/front-matter.ts";
import type { GuidelineTool } from "../adapter.ts";

/** The keys that a tool reads in the front matter of its rules, with the values that it takes. */
export const frontMatterKeys = {
  cursor: { description: [], globs: [], alwaysApply: ["true", "false"] },
  claude: { paths: [] },
  cline: { paths: [] },
  kiro: {
    inclusion: ["always", "fileMatch", "auto", "manual"],
    fileMatchPattern: [],
    name: [],
    description: [],
  },
  copilot: {
    applyTo: [],
    description: [],
    name: [],
    excludeAgent: ["code-review", "coding-agent", "cloud-agent"],
  },
  windsurf: { trigger: ["always_on", "glob", "model_decision", "manual"], globs: [], description: [] },
} as const satisfies Partial<Record<GuidelineTool, FrontMatterKeys>>;

/** `always, auto or manual`, for a message. */
export function anyOf(values: readonly string[]): string {
  return `${values.slice(0, -1).join(", ")} or ${values.at(-1)}`;
}

/** Keys that teams write for each other; no tool obeys them. */
const forPeople = new Set([
  ...["title", "name", "tags", "version", "author", "authors", "date", "created", "updated", "last_updated"],
  ...["category", "status", "owner", "license", "keywords", "id", "type", "priority"],
]);

/** A file whose front matter is checked. */
interface Checked {
  readonly path: string;
  readonly frontMatter: FrontMatter;
}

/** A warning about a key of the front matter, at the key's line. */
export function keyWarning(
  { path, frontMatter }: Checked,
  field: string,
  about: Pick<Diagnostic, "message"> & { readonly code: string },
): Diagnostic {
  const line = lineOfKey(frontMatter.raw, field);
  return { severity: "warning", rule: "front-matter", ...about, path, line, field };
}

/** The columns of a key's value, for a finding whose fix replaces it; nothing for a value of several lines. */
export function placeOfValue(
  { frontMatter: { raw } }: Pick<Checked, "frontMatter">,
  key: string,
): Pick<Diagnostic, "column" | "end_column"> {
  const line = raw.split(/\r\n?|\n/).find((text) => text.startsWith(`${key}:`)) ?? "";
  const value = /^[^:]+:[ \t]+(\S.*?)[ \t]*$/.exec(line)?.[1];
  if (value === undefined || /^[|>&#]/.test(value)) return {};
  const column = line.indexOf(value, key.length + 1) + 1;
  return { column, end_column: column + value.length };
}

/** The tools that ignore other keys. */
const labels = { cursor: "Cursor", kiro: "Kiro", copilot: "Copilot", windsurf: "Windsurf" } as const;

/** One warning for the keys that the tool does not know, with the key that was probably meant. */
export function unknownKeys(tool: keyof typeof labels, checked: Checked): Diagnostic[] {
  const keys = Object.keys(frontMatterKeys[tool]);
  const unknown = Object.keys(checked.frontMatter.data).filter(
    (key) => !keys.includes(key) && !forPeople.has(key),
  );
  const [first] = unknown;
  if (first === undefined) return [];
  const meant = suggest(first, keys);
  const hint = meant === undefined ? `It reads ${keys.join(", ")}.` : `Did you mean ${meant}?`;
  const names = unknown.slice(0, 5).map((key) => `"${key.slice(0, 60)}"`);
  const message = `${labels[tool]} does not know the ${unknown.length === 1 ? "key" : "keys"} ${names.join(", ")}. ${hint}`;
  return [keyWarning(checked, first, { code: "key_unknown", message })];
}
