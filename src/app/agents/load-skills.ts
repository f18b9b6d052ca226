import { basename, dirname, isAbsolute, join, relative, resolve, sep } from "node:path";
import type { Skill } from "../../agents/skill.ts";
import { nameKey } from "../../base/name-fault.ts";
import type { SourceProblem } from "./discover-sources.ts";
import { alreadyNamed, createFieldReader } from "./front-matter-fields.ts";
import { findMarkdown, readMarkdownFile } from "./read-markdown-file.ts";

/**
 * Loads a skill from a Markdown file, or from the `SKILL.md` of a folder. Throws `invalid_request` for
 * a file that is no skill: one without instructions, or with front matter that is not what it should be.
 */
export async function loadSkill(path: string, options: { readonly root?: string } = {}): Promise<Skill> {
  const root = resolve(options.root ?? ".");
  const full = isAbsolute(path) ? path : resolve(root, path);
  const file = full.endsWith(".md") ? full : join(full, "SKILL.md");
  const isPackaged = basename(file) === "SKILL.md";
  const read = await readMarkdownFile(file, {
    root,
    named: isPackaged ? basename(dirname(file)) : undefined,
  });
  const fields = createFieldReader("skill", read, ["name", "description", "input_schema", "output_schema"]);
  if (read.body === "") throw fields.refuse("it has no instructions");
  const inputSchema = fields.schema("input_schema");
  const outputSchema = fields.schema("output_schema");
  const folder = relative(root, dirname(file)).split(sep).join("/");
  return {
    name: fields.name(),
    description: fields.text("description") ?? "",
    instructions: read.body,
    ...(inputSchema === undefined ? {} : { inputSchema }),
    ...(outputSchema === undefined ? {} : { outputSchema }),
    ...(isPackaged && !folder.startsWith("..") ? { folder } : {}),
  };
}

/** The skills of a project: `.agents/skills/**\/*.md`; in a folder with a `SKILL.md`, that one only. */
export async function loadSkills(
  root: string,
  check?: (file: string) => void,
): Promise<{ readonly skills: readonly Skill[]; readonly problems: readonly SourceProblem[] }> {
  const skills: Skill[] = [];
  const problems: SourceProblem[] = [];
  const { paths, unusable } = await skillFiles(root, ".agents/skills");
  for (const path of paths) {
    try {
      check?.(join(root, path));
      const skill = await loadSkill(path, { root });
      const other = skills.find(({ name }) => nameKey(name) === nameKey(skill.name));
      if (other !== undefined)
        problems.push({ path, message: alreadyNamed("skill", other.name, skill.name) });
      else skills.push(skill);
    } catch (error) {
      problems.push({ path, message: error instanceof Error ? error.message : String(error) });
    }
  }
  return { skills, problems: [...unusable, ...problems] };
}

/** The Markdown files that are skills: beside a `SKILL.md`, others are what it speaks of. */
async function skillFiles(root: string, folder: string): ReturnType<typeof findMarkdown> {
  const { paths, unusable } = await findMarkdown(root, folder);
  const packages = [...paths, ...unusable.map(({ path }) => path)]
    .filter((path) => basename(path) === "SKILL.md")
    .map((path) => path.slice(0, -"SKILL.md".length));
  const isSkill = (path: string): boolean =>
    !packages.some((folder) => path.startsWith(folder) && path !== `${folder}SKILL.md`);
  return {
    paths: paths.filter(isSkill),
    unusable: unusable.filter(({ path }) => isSkill(path)),
  };
}
