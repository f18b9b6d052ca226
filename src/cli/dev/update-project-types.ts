import { existsSync } from "node:fs";
import { join } from "node:path";
import { discoverSources } from "../../app/sources/discover-sources.ts";
import { isProjectTypes, projectTypesFile, toProjectTypes } from "../../app/sources/write-project-types.ts";
import { KitError } from "../../base/kit-error.ts";
import { readFileInside, writeFileInside } from "../../project/features/write-file.ts";

export interface ProjectTypesOptions {
  readonly root: string;
  readonly signal: AbortSignal;
  /** Only report whether the file would change. */
  readonly check?: boolean | undefined;
}

/**
 * Writes `kit.types.ts` if its content differs from the project's files; returns whether it did. Throws `conflict`
 * for a file of that name that kit did not write.
 */
export async function updateProjectTypes({
  root,
  signal,
  check = false,
}: ProjectTypesOptions): Promise<boolean> {
  const { sources } = await discoverSources(root);
  const content = toProjectTypes(sources);
  const path = projectTypesFile;
  const existing = (await readFileInside(root, { path, maxBytes: Number.POSITIVE_INFINITY })) ?? null;
  const text = existing === null ? "" : new TextDecoder().decode(existing);
  // Git may have changed the line endings at checkout.
  if (text.replaceAll("\r\n", "\n") === content) return false;
  if (existing !== null && !isProjectTypes(text)) {
    throw new KitError({
      code: "conflict",
      message: `${path} exists already, and kit did not write it.`,
      hint: "Rename it: kit writes the names of agents and workflows to this file.",
    });
  }
  if (!check) await writeFileInside({ root, readOnly: false }, { path, content, expected: existing, signal });
  return true;
}

/** Whether `kit dev` maintains the file: in a TypeScript project, or where the file exists. */
export function usesProjectTypes(root: string): boolean {
  return existsSync(join(root, "tsconfig.json")) || existsSync(join(root, projectTypesFile));
}
