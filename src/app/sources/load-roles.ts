import { join } from "node:path";
import type { Role } from "../../agents/define/agent-profile.ts";
import type { JsonSchema } from "../../agents/define/tool.ts";
import { KitError } from "../../base/kit-error.ts";
import { faultOfDefinedName, nameKey, shownName } from "../../base/name-fault.ts";
import { suggest } from "../../base/suggest.ts";
import { toSentence } from "../../base/to-sentence.ts";
import { isModelChoice, modelChoiceForm } from "../../models/model-name.ts";
import { thinkingLevels } from "../../protocol/enums.ts";
import type { ModelChoice } from "../../protocol/prompt.ts";
import type { SourceProblem } from "./discover-sources.ts";
import { findMarkdown, type MarkdownFile, readMarkdownFile } from "./read-markdown-file.ts";

/** The roles of a project: `.agents/roles/**\/*.md`. A file that is none is a problem, not an exception. */
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
      problems.push({ path, message: error instanceof Error ? error.message : String(error) });
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
    ...(model === undefined ? {} : { model }),
    ...(thinkingLevel === undefined ? {} : { thinkingLevel }),
    ...(file.path === undefined ? {} : { file: file.path }),
  };
}

/** Reads the front matter of one kind of file; what is wrong with it is said with the file's name. */
export interface FieldReader {
  text(key: string): string | undefined;
  models(key: string): ModelChoice | undefined;
  schema(key: string): JsonSchema | undefined;
  /** `name`, or what the file is called; refused where nothing may be called so. */
  name(): string;
  refuse(why: string): KitError;
}

/**
 * A reader for the keys of a file. It refuses a key that is nearly one of them as a typo, and ignores the keys
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
      message: toSentence(`The ${kind} ${shownName(name)} cannot be used: ${why}`),
    });
  for (const key of Object.keys(data)) {
    if (keys.includes(key)) continue;
    const near = suggest(key, keys);
    if (near !== undefined) throw refuse(`\`${key}\` is no key of a ${kind}; did you mean ${near}?`);
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
      const given = this.text("name") ?? name;
      const fault = faultOfDefinedName(given);
      if (fault === undefined) return given;
      throw refuse(`its name ${shownName(given)} ${fault}`);
    },
    schema(key) {
      const value = read(key);
      if (value === undefined) return undefined;
      if (typeof value === "object" && !Array.isArray(value)) return value as JsonSchema;
      throw refuse(`\`${key}\` must be a JSON Schema`);
    },
  };
}

/** Says that a name is taken; where only the case differs, a reader and many disks take the two for one. */
export function alreadyNamed(kind: "skill" | "role", first: string, second: string): string {
  if (first === second) return `Another ${kind} is named "${second}" too.`;
  return `Another ${kind} is named "${first}", which differs from "${second}" in case only.`;
}
