import { createHash } from "node:crypto";
import { readdir, readFile } from "node:fs/promises";
import { join, relative } from "node:path";

/** Every file below a folder with a digest of its content. */
export async function snapshotOf(folder: string): Promise<Readonly<Record<string, string>>> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true });
  const files = entries.filter((entry) => entry.isFile()).map((entry) => join(entry.parentPath, entry.name));
  const digests = await Promise.all(
    files.map(async (file) => {
      const digest = createHash("sha256")
        .update(await readFile(file))
        .digest("hex");
      return [relative(folder, file), digest] as const;
    }),
  );
  return Object.fromEntries(digests.sort(([a], [b]) => (a < b ? -1 : 1)));
}
