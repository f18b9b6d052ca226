import { existsSync } from "node:fs";
import { join } from "node:path";
import { repositoryRoot } from "../scripts/files.ts";

/**
 * A file of the corpus that lies beside a checkout in some places, and in others does not; the tests
 * that need it skip themselves then.
 */
export function sharedFile(name: string): string | undefined {
  const file = join(repositoryRoot, "..", "shared", name);
  return existsSync(file) ? file : undefined;
}
