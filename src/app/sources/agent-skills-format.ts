import { suggest } from "../../base/suggest.ts";

/**
 * The Agent Skills format, which other tools read, too.
 *
 * @see https://agentskills.io/specification
 */
export const skillFields = [
  "name",
  "description",
  "license",
  "compatibility",
  "metadata",
  "allowed-tools",
] as const;

/** Where kit keeps the JSON Schemas of a skill, as JSON text or as the name of a file beside it. */
export const schemaKeys = { input: "kit-input-schema", output: "kit-output-schema" } as const;

/** The fault of a skill's name by the format; undefined for a good one. */
export function faultOfSkillName(name: string, folder?: string): string | undefined {
  if (name.length > 64) return "must have at most 64 characters";
  if (!/^[a-z0-9-]+$/.test(name)) return "may hold only lowercase letters, digits and hyphens";
  if (name.startsWith("-") || name.endsWith("-")) return "must not begin or end with a hyphen";
  if (name.includes("--")) return "must not hold two hyphens in a row";
  if (folder !== undefined && folder !== name) return `must be the name of its folder, "${folder}"`;
  return undefined;
}

/** Where the front matter of a `SKILL.md` departs from the format, one sentence for each rule. */
export function formatProblems(
  data: Readonly<Record<string, unknown>>,
  skill: { readonly name: string; readonly folder: string },
): string[] {
  const problems: string[] = [];
  const fault = faultOfSkillName(skill.name, skill.folder);
  if (fault !== undefined) problems.push(`The name "${skill.name.slice(0, 80)}" ${fault}.`);
  const { description, compatibility, metadata } = data;
  const length = typeof description === "string" ? [...description.trim()].length : 0;
  if (length < 1) problems.push("It has no description, which tells a model when to use the skill.");
  if (length > 1024) problems.push(`Its description has ${length} characters; at most 1,024 are allowed.`);
  if (compatibility !== undefined && (typeof compatibility !== "string" || compatibility.length > 500))
    problems.push("Its compatibility must be a text of at most 500 characters.");
  if (
    metadata !== undefined &&
    (typeof metadata !== "object" || metadata === null || Array.isArray(metadata))
  )
    problems.push("Its metadata must be a map.");
  for (const key of Object.keys(isMap(metadata) ? metadata : {})) {
    const near = key.startsWith("kit") ? suggest(key, Object.values(schemaKeys)) : undefined;
    if (near !== undefined && near !== key) problems.push(`Its metadata has "${key}"; did you mean ${near}?`);
  }
  return problems;
}

function isMap(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
