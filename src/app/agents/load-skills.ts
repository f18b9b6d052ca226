import { readdir } from "node:fs/promises";
import { basename, dirname, isAbsolute, join, relative, resolve, sep } from "node:path";
import type { Skill } from "../../agents/skill.ts";
import type { JsonSchema } from "../../agents/tool.ts";
import { KitError } from "../../base/kit-error.ts";
import type { SourceProblem } from "./discover-sources.ts";
import { readMarkdownFile } from "./read-markdown-file.ts";

/**
 * Loads a skill from a Markdown file, or from the `SKILL.md` of a folder. Throws `invalid_request` for
 * a file that is no skill: one without instructions, or with front matter that is not what it should be.
 */
export async function loadSkill(path: string, options: { readonly root?: string } = {}): Promise<Skill> {
  const root = resolve(options.root ?? ".");
  const full = isAbsolute(path) ? path : resolve(root, path);
  const file = full.endsWith(".md") ? full : join(full, "SKILL.md");
  const { data, body, name } = await readMarkdownFile(
    file,
    basename(file) === "SKILL.md" ? basename(dirname(file)) : undefined,
  );
  if (body === "") throw notASkill(name, "it has no instructions");
  const inputSchema = schemaOf(data, "input_schema", name);
  const outputSchema = schemaOf(data, "output_schema", name);
  const folder = relative(root, dirname(file)).split(sep).join("/");
  return {
    name: textOf(data, "name", name) ?? name,
    description: textOf(data, "description", name) ?? "",
    instructions: body,
    ...(inputSchema === undefined ? {} : { inputSchema }),
    ...(outputSchema === undefined ? {} : { outputSchema }),
    ...(basename(file) === "SKILL.md" && !folder.startsWith("..") ? { folder } : {}),
  };
}

/** The skills of a project: `.agents/skills/**\/*.md`; in a folder with a `SKILL.md`, that one only. */
export async function loadSkills(
  root: string,
): Promise<{ readonly skills: readonly Skill[]; readonly problems: readonly SourceProblem[] }> {
  const skills: Skill[] = [];
  const problems: SourceProblem[] = [];
  for (const path of await skillFiles(root, ".agents/skills")) {
    try {
      const skill = await loadSkill(path, { root });
      if (skills.some((other) => other.name === skill.name))
        problems.push({ path, message: `Another skill is named "${skill.name}" too.` });
      else skills.push(skill);
    } catch (error) {
      problems.push({ path, message: error instanceof Error ? error.message : String(error) });
    }
  }
  return { skills, problems };
}

async function skillFiles(root: string, folder: string): Promise<readonly string[]> {
  const entries = await readdir(join(root, folder), { withFileTypes: true }).catch(() => []);
  if (entries.some((entry) => entry.isFile() && entry.name === "SKILL.md")) return [`${folder}/SKILL.md`];
  const found: string[] = [];
  for (const entry of entries.sort((left, right) => (left.name < right.name ? -1 : 1))) {
    if (entry.isDirectory()) found.push(...(await skillFiles(root, `${folder}/${entry.name}`)));
    if (entry.isFile() && entry.name.endsWith(".md")) found.push(`${folder}/${entry.name}`);
  }
  return found;
}

function textOf(data: Readonly<Record<string, unknown>>, key: string, skill: string): string | undefined {
  const value = data[key];
  if (value === undefined || value === null) return undefined;
  if (typeof value === "string") return value;
  throw notASkill(skill, `\`${key}\` must be a text`);
}

function schemaOf(
  data: Readonly<Record<string, unknown>>,
  key: string,
  skill: string,
): JsonSchema | undefined {
  const value = data[key];
  if (value === undefined || value === null) return undefined;
  if (typeof value === "object" && !Array.isArray(value)) return value as JsonSchema;
  throw notASkill(skill, `\`${key}\` must be a JSON Schema`);
}

function notASkill(name: string, why: string): KitError {
  return new KitError({ code: "invalid_request", message: `The skill "${name}" cannot be used: ${why}.` });
}
