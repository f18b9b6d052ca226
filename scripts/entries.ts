import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { repositoryRoot } from "./files.ts";

/** A public entry of the package that contains code. */
export interface Entry {
  /** The specifier of its import: `kit`, `kit/specs`. */
  readonly name: string;
  /** Absolute, in `dist/`. */
  readonly types: string;
  readonly code: string;
}

/** Returns the entries of `exports` in package.json, without plain files. */
export async function readEntries(): Promise<readonly Entry[]> {
  const manifest: { exports: Record<string, string | { types: string; default: string }> } = JSON.parse(
    await readFile(join(repositoryRoot, "package.json"), "utf8"),
  );
  return Object.entries(manifest.exports).flatMap(([subpath, target]) =>
    typeof target === "string"
      ? []
      : [
          {
            name: `kit${subpath.slice(1)}`,
            types: join(repositoryRoot, target.types),
            code: join(repositoryRoot, target.default),
          },
        ],
  );
}
