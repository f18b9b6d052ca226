import { isRepositoryFolder } from "../../base/names.ts";
import type { Sandbox } from "../../sandboxes/contract.ts";
import { isGrantedPath } from "../policy/protected-paths.ts";
import { toView } from "./command-context.ts";

/** Entries that make a folder a repository, or by which Git runs programs. In any letter case, as on some file systems. */
const parts = /^(?:HEAD|objects|refs|commondir|config|config\.worktree|hooks|info)$/i;

/** Whether a name can be a part of a repository. */
export function isPartName(name: string): boolean {
  return parts.test(name);
}

/**
 * Returns the first of the paths that is a part of a repository without a `.git` of its own, or would be once all of them exist.
 * Git, and editors that ask it, run the programs that such a repository names. The paths are relative to the root, without links.
 */
export async function findPartOfRepository(
  paths: readonly string[],
  granted: readonly string[],
  sandbox: Sandbox,
): Promise<string | undefined> {
  const found = paths
    .filter((path) => !isGrantedPath(path, granted))
    .flatMap((path) => {
      const segments = path.split("/");
      return segments.flatMap((name, depth) =>
        isPartName(name) ? [{ path, name, folder: segments.slice(0, depth).join("/") }] : [],
      );
    });
  for (const [folder, inFolder] of Map.groupBy(found, (place) => place.folder)) {
    const entries = await sandbox.list(toView(folder, sandbox)).catch(() => []);
    const names = new Set([...entries, ...inFolder].map(({ name }) => asGit(name)));
    // Git looks for a `.git` first.
    if (isRepositoryFolder(names) && !(folder === "" && names.has(".git"))) return inFolder[0]?.path;
  }
  return undefined;
}

function asGit(name: string): string {
  return name.toLowerCase() === "head" ? "HEAD" : name.toLowerCase();
}
