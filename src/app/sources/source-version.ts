import { stat } from "node:fs/promises";
import { join } from "node:path";
import { discoverSources } from "./discover-sources.ts";
import { findSkillFiles } from "./load-skills.ts";
import { findMarkdown } from "./read-markdown-file.ts";

/**
 * A text that is another one once a source file, a skill, a role or one of `files` has changed, has
 * come or has gone. Costs a look at each of them, which are few.
 */
export async function sourceVersion(root: string, files: readonly string[]): Promise<string> {
  const [{ sources, problems }, ...texts] = await Promise.all([
    discoverSources(root),
    findSkillFiles(root),
    findMarkdown(root, ".agents/roles"),
  ]);
  const found = texts.flatMap(({ paths, unusable }) => [...paths, ...unusable.map(({ path }) => path)]);
  const named = [...sources, ...problems].map(({ path }) => path);
  const own = [...named, ...found].map((path) => join(root, path));
  const all = [...new Set([...own, ...files])].sort();
  return (await Promise.all(all.map(versionOf))).join("\n");
}

async function versionOf(file: string): Promise<string> {
  const found = await stat(file, { bigint: true }).catch(() => undefined);
  return `${file} ${found?.mtimeNs} ${found?.size} ${found?.ino}`;
}
