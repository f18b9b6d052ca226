import { readdir } from "node:fs/promises";
import { basename, dirname, isAbsolute, join, relative, resolve, sep } from "node:path";
import type { Skill } from "../../agents/skill.ts";
import type { SourceProblem } from "./discover-sources.ts";
import { createFieldReader } from "./front-matter-fields.ts";
import { readMarkdownFile } from "./read-markdown-file.ts";

/**
 * Loads a skill from a Markdown file, or from the `SKILL.md` of a folder. Throws `invalid_request` for
 * a file that is no skill: one without instructions, or with front matter that is not what it should be.
 */
export async function loadSkill(path: string, options: { readonly root?: string } = {}): Promise<Skill> {
  const root = resolve(options.root ?? ".");
  const full = isAbsolute(path) ? path : resolve(root, path);
  const file = full.endsWith(".md") ? full : join(full, "SKILL.md");
  const read = await readMarkdownFile(
    file,
    basename(file) === "SKILL.md" ? basename(dirname(file)) : undefined,
  );
  const fields = createFieldReader("skill", read, ["name", "description", "input_schema", "output_schema"]);
  if (read.body === "") throw fields.refuse("it has no instructions");
  const inputSchema = fields.schema("input_schema");
  const outputSchema = fields.schema("output_schema");
  const folder = relative(root, dirname(file)).split(sep).join("/");
  return {
    name: fields.text("name") ?? read.name,
    description: fields.text("description") ?? "",
    instructions: read.body,
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
