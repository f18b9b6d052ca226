import { readFile, realpath, stat } from "node:fs/promises";
import { basename, isAbsolute, join, relative, sep } from "node:path";
import type { Role } from "../../agents/define/agent-profile.ts";
import type { JsonSchema } from "../../agents/define/tool.ts";
import { suggest, toSentence } from "../../base/error-text.ts";
import { KitError } from "../../base/kit-error.ts";
import { faultOfDefinedName, nameKey, quoteName } from "../../base/names.ts";
import { isRecord } from "../../base/record.ts";
import { thrownText } from "../../base/thrown.ts";
import { findFiles } from "../../files/find-files.ts";
import { faultOfSkillName } from "../../guidelines/skills/skill-format.ts";
import { faultOfJsonSchema } from "../../json-schema/schema-fault.ts";
import { isModelChoice, modelChoiceForm } from "../../models/known-models.ts";
import { readFileInside } from "../../project/features/write-file.ts";
import { thinkingLevels } from "../../protocol/enums.ts";
import type { ModelChoice } from "../../protocol/prompt.ts";
import { readFrontMatter } from "../../specs/markdown/front-matter.ts";
import { scanMarkdown, textOfLines } from "../../specs/markdown/scan-markdown.ts";
import type { SourceProblem } from "./discover-sources.ts";

/** Loads the roles of a project: `.agents/roles/**\/*.md`. An invalid file is a problem, not an exception. */
export async function loadRoles(
  root: string,
  check?: (file: string) => void,
): Promise<{ readonly roles: readonly Role[]; readonly problems: readonly SourceProblem[] }> {
  const roles: Role[] = [];
  const problems: SourceProblem[] = [];
  const { paths, unusable } = await findMarkdown(root, ".agents/roles");
  for (const path of paths) {
    try {
      check?.(join(root, path));
      const role = toRole(await readMarkdownFile(join(root, path), { root }));
      const other = roles.find(({ name }) => nameKey(name) === nameKey(role.name));
      if (other !== undefined) problems.push({ path, message: alreadyNamed("role", other.name, role.name) });
      else roles.push(role);
    } catch (error) {
      problems.push({ path, message: thrownText(error) });
    }
  }
  return { roles, problems: [...unusable, ...problems] };
}

function toRole(file: MarkdownFile): Role {
  const fields = createFieldReader("role", file, ["name", "description", "model", "thinking_level"]);
  const model = fields.models("model");
  const written = fields.text("thinking_level");
  const thinkingLevel = thinkingLevels.find((level) => level === written);
  if (written !== undefined && thinkingLevel === undefined)
    throw fields.refuse(`\`thinking_level\` must be one of ${thinkingLevels.join(", ")}`);
  if (file.body === "" && model === undefined && thinkingLevel === undefined)
    throw fields.refuse("it says nothing");
  return {
    name: fields.name(),
    description: fields.text("description") ?? "",
    instructions: file.body,
    model,
    thinkingLevel,
    file: file.path,
  };
}

/** Reads the front matter of a file; error messages name the file. */
export interface FieldReader {
  text(key: string): string | undefined;
  models(key: string): ModelChoice | undefined;
  schema(key: string): JsonSchema | undefined;
  /** Returns `name`, else the name of the file. Throws for an invalid name. */
  name(): string;
  refuse(why: string): KitError;
}

/**
 * Creates a reader for the keys of a file. It refuses an unknown key that is similar to one of them, and ignores the keys
 * of other tools (`license`, `allowed-tools`).
 */
export function createFieldReader(
  kind: "skill" | "role",
  file: MarkdownFile,
  keys: readonly string[],
): FieldReader {
  const { data, name } = file;
  const refuse = (why: string): KitError =>
    new KitError({
      code: "invalid_request",
      message: toSentence(`The ${kind} ${quoteName(name)} cannot be used: ${why}`),
    });
  for (const key of Object.keys(data)) {
    if (keys.includes(key)) continue;
    const near = suggest(key, keys);
    if (near !== undefined) throw refuse(`\`${key}\` is not a key of a ${kind}; did you mean ${near}?`);
  }
  const read = (key: string): unknown => data[key] ?? undefined;
  return {
    refuse,
    text(key) {
      const value = read(key);
      if (value === undefined || typeof value === "string") return value;
      throw refuse(`\`${key}\` must be a text`);
    },
    models(key) {
      const value = read(key);
      if (value === undefined) return undefined;
      if (isModelChoice(value)) return value;
      throw refuse(`\`${key}\` must be ${modelChoiceForm}`);
    },
    name() {
      const declaredName = this.text("name") ?? name;
      const fault = faultOfDefinedName(declaredName);
      if (fault === undefined) return declaredName;
      throw refuse(`its name ${quoteName(declaredName)} ${fault}`);
    },
    schema(key) {
      const value = read(key);
      if (value === undefined) return undefined;
      const fault = faultOfJsonSchema(value);
      if (fault === undefined) return value as JsonSchema;
      throw refuse(`\`${key}\` ${fault}`);
    },
  };
}

/** Creates the message for a name that is already used; names that differ only in case count as equal. */
export function alreadyNamed(kind: "skill" | "role", first: string, second: string): string {
  if (first === second) return `Another ${kind} is named "${second}" too.`;
  return `Another ${kind} is named "${first}", which differs from "${second}" in case only.`;
}

/** A Markdown file with front matter, as skills and roles are written. */
interface MarkdownFile {
  readonly name: string;
  /** Relative to the root; absent for a file that lies elsewhere. */
  readonly path?: string;
  readonly data: Readonly<Record<string, unknown>>;
  /** Without the front matter, trimmed. */
  readonly body: string;
}

/** A larger file is refused. */
const maxBytes = 1024 * 1024;

/**
 * Reads a Markdown file. Throws `invalid_request` if it cannot be read or its front matter is invalid, and
 * `forbidden` for a path below the root that a link leads out of the root.
 */
export async function readMarkdownFile(
  file: string,
  { root, name: fileName }: { readonly root: string; readonly name?: string | undefined },
): Promise<MarkdownFile> {
  const name = fileName ?? basename(file).replace(/\.md$/, "");
  const path = relative(root, file).split(sep).join("/");
  const isBelow = path !== ".." && !path.startsWith("../") && !isAbsolute(path);
  const text = await (isBelow ? readTextBelow(root, path) : readText(file)).catch((cause: unknown) => {
    if (cause instanceof KitError) throw cause;
    throw cannotRead(file, "cannot be read", cause);
  });
  const scan = scanMarkdown(text.replace(/^\uFEFF/, ""));
  const front = readFrontMatter(scan);
  const problem = front.problems.find((entry) => entry.severity === "error");
  if (problem !== undefined) {
    throw new KitError({
      code: "invalid_request",
      message: `${basename(file)}, line ${problem.line}: ${problem.message}`,
    });
  }
  const location = isBelow ? { path } : {};
  return {
    name,
    ...location,
    data: front.data,
    body: textOfLines(scan, scan.bodyLine, scan.lineCount).trim(),
  };
}

/** Finds the Markdown files below a folder of a project, and the entries that cannot be read. */
export async function findMarkdown(
  root: string,
  folder: string,
): Promise<{ readonly paths: readonly string[]; readonly unusable: readonly SourceProblem[] }> {
  const { paths, unusable } = await findFiles(root, folder, { accepts: (name) => name.endsWith(".md") });
  return {
    paths,
    unusable: unusable.map(({ path, reason }) => ({ path, message: toSentence(`${path} ${reason}`) })),
  };
}

async function readTextBelow(root: string, path: string): Promise<string> {
  const bytes = await readFileInside(await realpath(root), { path, maxBytes }).catch((error: unknown) => {
    if (!(error instanceof KitError) || error.code !== "payload_too_large") throw error;
    throw cannotRead(path, "is larger than 1 MiB");
  });
  if (bytes === undefined) throw cannotRead(path, "is not there");
  return new TextDecoder().decode(bytes);
}

/** Reads a file outside the project, whose path comes from a program. */
async function readText(file: string): Promise<string> {
  const stats = await stat(file);
  // Check before opening the file: reading a pipe could wait forever.
  if (!stats.isFile()) throw cannotRead(file, "is not a file");
  if (stats.size > maxBytes) throw cannotRead(file, "is larger than 1 MiB");
  return readFile(file, "utf8");
}

function cannotRead(file: string, why: string, cause?: unknown): KitError {
  const message = `${basename(file)} ${why}.`;
  return new KitError({ code: "invalid_request", message, cause });
}

/** The metadata keys for the JSON Schemas of a skill: JSON text, or the name of a file next to it. */
export const schemaKeys = { input: "kit-input-schema", output: "kit-output-schema" } as const;

/** Returns a sentence for each rule of the format that the front matter of a `SKILL.md` breaks. */
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
  for (const key of Object.keys(isRecord(metadata) ? metadata : {})) {
    const near = key.startsWith("kit") ? suggest(key, Object.values(schemaKeys)) : undefined;
    if (near !== undefined && near !== key) problems.push(`Its metadata has "${key}"; did you mean ${near}?`);
  }
  return problems;
}
