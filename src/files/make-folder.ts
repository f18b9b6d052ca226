import { mkdirSync, statSync } from "node:fs";
import { dirname } from "node:path";
import { hasCode } from "./file-error.ts";

/**
 * Makes a folder, and those above it that are missing; throws what the system says. It ends everywhere: Node's
 * `recursive` never does where a file system has no place for a new folder and says that it is missing (/proc).
 */
export function makeFolderSync(path: string): void {
  const missing: string[] = [];
  let existing = path;
  while (!makeOne(existing, { mayMiss: dirname(existing) !== existing })) {
    missing.push(existing);
    existing = dirname(existing);
  }
  for (const folder of missing.reverse()) makeOne(folder, { mayMiss: false });
}

/** False where the folder above is missing. */
function makeOne(path: string, { mayMiss }: { readonly mayMiss: boolean }): boolean {
  try {
    mkdirSync(path);
  } catch (error) {
    if (mayMiss && hasCode(error, "ENOENT")) return false;
    // Some file systems name another fault of a folder that is there: they are read-only, for one.
    if (!isFolder(path)) throw error;
  }
  return true;
}

function isFolder(path: string): boolean {
  try {
    return statSync(path).isDirectory();
  } catch {
    return false;
  }
}
