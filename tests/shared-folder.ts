import { existsSync } from "node:fs";
import { join } from "node:path";
import { repositoryRoot } from "../scripts/files.ts";

/**
 * Finds a file of the corpus, which is next to the checkout only on some machines; tests that need it are skipped
 * without it.
 */
export function sharedFile(name: string): string | undefined {
  const file = join(repositoryRoot, "..", "shared", name);
  return existsSync(file) ? file : undefined;
}
