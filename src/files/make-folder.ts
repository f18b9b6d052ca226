import { mkdirSync, statSync } from "node:fs";
import { dirname } from "node:path";
import { hasCode } from "./file-error.ts";

/**
 * Creates a folder and its missing parents; throws the error of the system. Node's `recursive` loops for ever where a file system
 * answers ENOENT for a folder that cannot be created (/proc); this function ends.
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
    // Some file systems report another error for a folder that exists: EROFS, for one.
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
