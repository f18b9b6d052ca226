import { readdir } from "node:fs/promises";
import { join } from "node:path";

/** The folder of package.json, absolute. */
export const repositoryRoot: string = join(import.meta.dirname, "..");

/** Returns every file below a folder, absolute and sorted; an empty list if there is no such folder. */
export async function listFiles(folder: string): Promise<readonly string[]> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true }).catch(() => []);
  return entries
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name))
    .sort();
}
