import { existsSync, realpathSync } from "node:fs";
import { homedir } from "node:os";
import { dirname, join, relative, resolve, sep } from "node:path";
import { usageError } from "./report-error.ts";

/** The names of a project's configuration, of which it has one at most. */
export const configNames: readonly string[] = [
  "kit.config.ts",
  "kit.config.mts",
  "kit.config.js",
  "kit.config.mjs",
  "kit.toml",
];

/**
 * The root of the project that a folder belongs to: the nearest folder upward with a kit configuration, else the
 * root of the Git work tree, else the folder itself. A home folder that is a Git work tree does not count as a
 * project.
 */
export function findRoot(folder: string): string {
  const ancestors = [...ancestorsOf(realpathSync(folder))];
  const home = homedir();
  return (
    ancestors.find(
      (candidate) => candidate !== home && configNames.some((name) => existsSync(join(candidate, name))),
    ) ??
    ancestors.find((candidate) => candidate !== home && existsSync(join(candidate, ".git"))) ??
    realpathSync(folder)
  );
}

function* ancestorsOf(folder: string): Iterable<string> {
  let current = folder;
  while (true) {
    yield current;
    const parent = dirname(current);
    if (parent === current) return;
    current = parent;
  }
}

/**
 * Converts a path that is relative to `cwd` to a project path: POSIX, relative to the root. The file need not exist.
 * Throws `invalid_request` for an empty path and for one outside of the project.
 */
export function toProjectPath(
  path: string,
  { cwd, root }: { readonly cwd: string; readonly root: string },
): string {
  const inside = relative(realpathSync(root), resolve(realpathSync(cwd), path));
  if (path === "") throw usageError("A path is empty.");
  if (inside === ".." || inside.startsWith(`..${sep}`)) {
    throw usageError(`${path} lies outside of the project.`, "The project's folder is set with --cwd.");
  }
  return inside.split(sep).join("/");
}
