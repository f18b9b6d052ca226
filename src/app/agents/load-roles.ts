import { readdir } from "node:fs/promises";
import { join } from "node:path";
import type { Role } from "../../agents/role.ts";
import { thinkingLevels } from "../../protocol/thinking-level.ts";
import type { SourceProblem } from "./discover-sources.ts";
import { createFieldReader } from "./front-matter-fields.ts";
import { type MarkdownFile, readMarkdownFile } from "./read-markdown-file.ts";

/** The roles of a project: `.agents/roles/**\/*.md`. A file that is none is a problem, not an exception. */
export async function loadRoles(
  root: string,
): Promise<{ readonly roles: readonly Role[]; readonly problems: readonly SourceProblem[] }> {
  const roles: Role[] = [];
  const problems: SourceProblem[] = [];
  const folder = ".agents/roles";
  const files = await readdir(join(root, folder), { recursive: true }).catch(() => []);
  for (const file of files.filter((name) => name.endsWith(".md")).sort()) {
    const path = `${folder}/${file.replaceAll("\\", "/")}`;
    try {
      const role = toRole(await readMarkdownFile(join(root, path)));
      if (roles.some((other) => other.name === role.name))
        problems.push({ path, message: `Another role is named "${role.name}" too.` });
      else roles.push(role);
    } catch (error) {
      problems.push({ path, message: error instanceof Error ? error.message : String(error) });
    }
  }
  return { roles, problems };
}

function toRole(file: MarkdownFile): Role {
  const fields = createFieldReader("role", file, ["name", "description", "model", "thinking_level"]);
  const model = fields.text("model");
  const written = fields.text("thinking_level");
  const thinkingLevel = thinkingLevels.find((level) => level === written);
  if (written !== undefined && thinkingLevel === undefined)
    throw fields.refuse(`\`thinking_level\` must be one of ${thinkingLevels.join(", ")}`);
  if (file.body === "" && model === undefined && thinkingLevel === undefined)
    throw fields.refuse("it says nothing");
  return {
    name: fields.text("name") ?? file.name,
    description: fields.text("description") ?? "",
    instructions: file.body,
    ...(model === undefined ? {} : { model }),
    ...(thinkingLevel === undefined ? {} : { thinkingLevel }),
  };
}
