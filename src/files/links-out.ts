import { lstatSync, realpathSync } from "node:fs";
import { join, sep } from "node:path";
import { KitError } from "../base/kit-error.ts";

/**
 * Throws `forbidden` where one of these paths below a root is a link that leads out of the root, or nowhere. For folders and files
 * that kit opens by itself, and that a repository may contain as links. Links that stay below the root are allowed.
 */
export function assertNoLinkOut(root: string, paths: readonly string[]): void {
  for (const path of paths) {
    if (!isLinkOut(root, path)) continue;
    throw new KitError({
      code: "forbidden",
      message: `${path} is a link that leads out of the project, and kit writes its own files only inside.`,
      hint: `Remove the link ${path}; kit makes what it needs.`,
    });
  }
}

export function isLinkOut(root: string, path: string): boolean {
  const entry = join(root, path);
  if (lstatSync(entry, { throwIfNoEntry: false })?.isSymbolicLink() !== true) return false;
  try {
    return !realpathSync(entry).startsWith(realpathSync(root) + sep);
  } catch {
    return true;
  }
}
