import { readdir, stat } from "node:fs/promises";
import { join } from "node:path";
import { discoverSources } from "./discover-sources.ts";

/**
 * A text that is another one once a source file, a skill, a role or one of `files` has changed, has
 * come or has gone. Costs a look at each of them, which are few.
 */
export async function sourceVersion(root: string, files: readonly string[]): Promise<string> {
  const [{ sources, problems }, ...texts] = await Promise.all([
    discoverSources(root),
    markdownBelow(join(root, ".agents", "skills")),
    markdownBelow(join(root, ".agents", "roles")),
  ]);
  const named = [...sources, ...problems].map(({ path }) => join(root, path));
  const all = [...new Set([...named, ...texts.flat(), ...files])].sort();
  return (await Promise.all(all.map(versionOf))).join("\n");
}

async function markdownBelow(folder: string): Promise<readonly string[]> {
  const names = await readdir(folder, { recursive: true }).catch(() => []);
  return names.filter((name) => name.endsWith(".md")).map((name) => join(folder, name));
}

async function versionOf(file: string): Promise<string> {
  const found = await stat(file, { bigint: true }).catch(() => undefined);
  return `${file} ${found?.mtimeNs} ${found?.size} ${found?.ino}`;
}
