import { realpathSync } from "node:fs";
import { dirname, isAbsolute, join, relative, resolve, sep } from "node:path";
import { KitError } from "../../base/kit-error.ts";

/**
 * A path as a coding agent names a file, as the project knows it: POSIX, relative to the root. Agents
 * write absolute paths as often as relative ones, and not always through the same links as the root.
 * The file need not exist. Throws `invalid_request` for a path outside of the project.
 */
export function toProjectPath(given: string, root: string): string {
  const path =
    inside(resolve(root, given), root) ?? (isAbsolute(given) ? inside(realPath(given), root) : undefined);
  if (path !== undefined && path !== "") return path;
  throw new KitError({ code: "invalid_request", message: `${given} is not inside the project.` });
}

function inside(path: string, root: string): string | undefined {
  const from = relative(root, path);
  return from === ".." || from.startsWith(`..${sep}`) || isAbsolute(from)
    ? undefined
    : from.split(sep).join("/");
}

/** The path with the links of that part of it resolved which exists. */
function realPath(path: string): string {
  try {
    return realpathSync(path);
  } catch {
    const parent = dirname(path);
    return parent === path ? path : join(realPath(parent), path.slice(parent.length));
  }
}
