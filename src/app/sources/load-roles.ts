import { join } from "node:path";
import type { Role } from "../../agents/role.ts";
import { nameKey } from "../../base/name-fault.ts";
import { thinkingLevels } from "../../protocol/enums.ts";
import type { SourceProblem } from "./discover-sources.ts";
import { alreadyNamed, createFieldReader } from "./front-matter-fields.ts";
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
