import { readFile, realpath } from "node:fs/promises";
import { basename, dirname, isAbsolute, join, relative, resolve, sep } from "node:path";
import type { Skill } from "../../agents/define/agent-profile.ts";
import type { JsonSchema } from "../../agents/define/tool.ts";
import { attempt } from "../../base/attempt.ts";
import { nameKey, quoteName } from "../../base/names.ts";
import { isRecord } from "../../base/record.ts";
import { thrownText } from "../../base/thrown.ts";
import { skillFields } from "../../guidelines/skills/skill-format.ts";
import { faultOfJsonSchema } from "../../json-schema/schema-fault.ts";
import { readFileInside } from "../../project/features/write-file.ts";
import type { SourceProblem } from "./discover-sources.ts";
import {
  alreadyNamed,
  createFieldReader,
  type FieldReader,
  findMarkdown,
  formatProblems,
  readMarkdownFile,
  schemaKeys,
} from "./load-roles.ts";

/** Like `loadSkill`; also returns the deviations from the Agent Skills format. */
export async function readSkill(
  path: string,
  options: { readonly root?: string },
): Promise<{ readonly skill: Skill; readonly problems: readonly string[] }> {
  const root = resolve(options.root ?? ".");
  const absolute = isAbsolute(path) ? path : resolve(root, path);
  const file = absolute.endsWith(".md") ? absolute : join(absolute, "SKILL.md");
  const isPackaged = basename(file) === "SKILL.md";
  const read = await readMarkdownFile(file, {
    root,
    name: isPackaged ? basename(dirname(file)) : undefined,
  });
  const fields = createFieldReader("skill", read, [...skillFields, "input_schema", "output_schema"]);
  if (read.body === "") throw fields.refuse("it has no instructions");
  const folder = relative(root, dirname(file)).split(sep).join("/");
  const packageFolder = isPackaged ? dirname(file) : undefined;
  const inputSchema = await schemaOf(fields, { kind: "input", data: read.data, folder: packageFolder });
  const outputSchema = await schemaOf(fields, { kind: "output", data: read.data, folder: packageFolder });
  const skill: Skill = {
    name: fields.name(),
    description: fields.text("description") ?? "",
    instructions: read.body,
    inputSchema,
    outputSchema,
    ...(isPackaged && !folder.startsWith("..") ? { folder } : {}),
    file: read.path,
  };
  const problems = isPackaged
    ? formatProblems(read.data, { name: skill.name, folder: basename(dirname(file)) })
    : [];
  return { skill, problems };
}

/**
 * Reads the schema under `metadata`: JSON text, YAML, or the name of a file next to the skill; else the top-level field
 * of older versions of kit.
 */
async function schemaOf(
  fields: FieldReader,
  from: {
    readonly kind: "input" | "output";
    readonly data: Readonly<Record<string, unknown>>;
    readonly folder: string | undefined;
  },
): Promise<JsonSchema | undefined> {
  const { metadata } = from.data;
  const key = schemaKeys[from.kind];
  const entries = typeof metadata === "object" && metadata !== null ? Object.entries(metadata) : [];
  const value: unknown = entries.find(([name]) => name === key)?.[1];
  if (value === undefined || value === null) return fields.schema(`${from.kind}_schema`);
  const isFile = typeof value === "string" && value.endsWith(".json") && !value.trimStart().startsWith("{");
  const text = isFile && from.folder !== undefined ? await readBeside(from.folder, value, fields) : value;
  const schema = typeof text === "string" ? attempt(() => JSON.parse(text)) : text;
  if (!isRecord(schema)) {
    throw fields.refuse(
      `\`metadata.${key}\` must be a JSON Schema as JSON, or the name of a file next to the skill that contains one`,
    );
  }
  const fault = faultOfJsonSchema(schema);
  if (fault !== undefined) throw fields.refuse(`\`metadata.${key}\` ${fault}`);
  return schema;
}

async function readBeside(folder: string, name: string, fields: FieldReader): Promise<string> {
  const path = name.replace(/^\.\//, "");
  const bytes = await readFileInside(await realpath(folder), { path, maxBytes: maxSchemaBytes }).catch(
    () => undefined,
  );
  if (bytes === undefined) throw fields.refuse(`its schema file ${quoteName(name)} cannot be read`);
  return new TextDecoder().decode(bytes);
}

const maxSchemaBytes = 256 * 1024;

/**
 * The folders of skills. The first folder with a skill of a name provides it; `.agents` is first because kit writes
 * there.
 */
const skillFolders = [".agents/skills", ".claude/skills", ".github/skills"] as const;

/** Markdown files that are, or can be, skills, in order of precedence. */
export async function findSkillFiles(root: string): ReturnType<typeof findMarkdown> {
  const folders = await Promise.all(skillFolders.map((folder) => skillFiles(root, folder)));
  return {
    paths: folders.flatMap(({ paths }) => paths),
    unusable: folders.flatMap(({ unusable }) => unusable),
  };
}

/**
 * The skills of a project: `.agents/skills/**\/*.md`; in a folder with a `SKILL.md`, that one only. Then
 * those of other tools: `.claude/skills` and `.github/skills`, folders with a `SKILL.md` only. Reports
 * deviations from the Agent Skills format, and still loads the skill if possible.
 */
export async function loadSkills(
  root: string,
  check?: (file: string) => void,
): Promise<{ readonly skills: readonly Skill[]; readonly problems: readonly SourceProblem[] }> {
  const skills: { readonly skill: Skill; readonly path: string }[] = [];
  const problems: SourceProblem[] = [];
  const { paths, unusable } = await findSkillFiles(root);
  for (const path of paths) {
    try {
      check?.(join(root, path));
      const { skill, problems: ownProblems } = await readSkill(path, { root });
      const other = skills.find((each) => nameKey(each.skill.name) === nameKey(skill.name));
      if (other !== undefined) {
        if (await isSameSkill(root, path, other.path)) continue;
        const message = alreadyNamed("skill", other.skill.name, skill.name);
        problems.push(
          isOfOneFolder(path, other.path)
            ? { path, message }
            : { path, message: `${message} kit uses ${other.path} and ignores this file.`, isHarmless: true },
        );
        continue;
      }
      skills.push({ skill, path });
      for (const message of ownProblems) problems.push({ path, message, isHarmless: true });
    } catch (error) {
      problems.push({ path, message: thrownText(error) });
    }
  }
  return { skills: skills.map(({ skill }) => skill), problems: [...unusable, ...problems] };
}

function isOfOneFolder(path: string, other: string): boolean {
  return path.split("/")[0] === other.split("/")[0];
}

/** Several tools often share a skill through a link or a copy. */
async function isSameSkill(root: string, path: string, other: string): Promise<boolean> {
  if (isOfOneFolder(path, other)) return false;
  const [one, two] = await Promise.all(
    [path, other].map((each) => readFile(join(root, each), "utf8").catch(() => undefined)),
  );
  return one !== undefined && one === two;
}

/** Keeps the Markdown files that are skills: next to a `SKILL.md`, other files are its documents. */
async function skillFiles(root: string, folder: string): ReturnType<typeof findMarkdown> {
  const { paths, unusable } = await findMarkdown(root, folder);
  const packages = [...paths, ...unusable.map(({ path }) => path)]
    .filter((path) => basename(path) === "SKILL.md")
    .map((path) => path.slice(0, -"SKILL.md".length));
  const takesFiles = folder === skillFolders[0];
  const isSkill = (path: string): boolean =>
    (takesFiles || basename(path) === "SKILL.md") &&
    !packages.some((each) => path.startsWith(each) && path !== `${each}SKILL.md`);
  return {
    paths: paths.filter(isSkill),
    unusable: unusable.filter(({ path }) =>
      takesFiles ? isSkill(path) : !path.endsWith(".md") || isSkill(path),
    ),
  };
}
