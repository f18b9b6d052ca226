import { readdir } from "node:fs/promises";
import { join } from "node:path";
import type { Role } from "../../agents/role.ts";
import { type ThinkingLevel, thinkingLevels } from "../../agents/thinking-level.ts";
import type { SourceProblem } from "./discover-sources.ts";
import { readMarkdownFile } from "./read-markdown-file.ts";

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

function toRole(file: {
  readonly name: string;
  readonly data: Readonly<Record<string, unknown>>;
  readonly body: string;
}): Role {
  const { data } = file;
  const level = data["thinking_level"];
  if (level !== undefined && !thinkingLevels.includes(level as ThinkingLevel)) {
    throw new Error(`\`thinking_level\` must be one of ${thinkingLevels.join(", ")}.`);
  }
  return {
    name: typeof data["name"] === "string" ? data["name"] : file.name,
    description: typeof data["description"] === "string" ? data["description"] : "",
    instructions: file.body,
    ...(typeof data["model"] === "string" ? { model: data["model"] } : {}),
    ...(level === undefined ? {} : { thinkingLevel: level as ThinkingLevel }),
  };
}
