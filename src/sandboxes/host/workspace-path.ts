import { isAbsolute } from "node:path";
import { forbidden, invalid } from "../../files/file-error.ts";
import type { Workspace } from "./workspace.ts";

/** Where a path starts: the root as it is and as it is called, and the working folder below it. */
interface PlaceOfPaths {
  readonly workspace: Pick<Workspace, "root" | "calledRoot">;
  readonly cwd: string;
}

/** Longer ones name nothing that a system could open. */
const maxPathLength = 4096;

/**
 * The path that a caller means, relative to the root of the workspace; "" for the root itself. `..`
 * goes back as it is written, before any link is looked at.
 *
 * An absolute path is taken when it lies in the workspace, as programs print them. Throws `forbidden`
 * for one that leaves the workspace, without repeating an absolute one, and `invalid_request` for one
 * that no file can have.
 */
export function toWorkspacePath({ workspace, cwd }: PlaceOfPaths, path: string): string {
  if (path.includes("\0")) throw invalid("A path has no NUL characters.");
  if (path.length > maxPathLength) throw invalid(`A path has at most ${maxPathLength} characters.`);
  const names: string[] = [];
  const from = isAbsolute(path) ? belowRoot(workspace, path) : `${cwd}/${path}`;
  for (const name of from.split("/")) {
    if (name === "" || name === ".") continue;
    if (name !== "..") names.push(name);
    else if (names.pop() === undefined) throw forbidden(`${shown(path)} leads out of the workspace.`);
  }
  return names.join("/");
}

/** A path of the workspace as one that is relative to its working folder. */
export function fromWorkingFolder(cwd: string, path: string): string {
  if (cwd === "") return path;
  const from = cwd.split("/");
  const to = path.split("/");
  let shared = 0;
  while (shared < from.length && shared < to.length - 1 && from[shared] === to[shared]) shared += 1;
  return [...from.slice(shared).map(() => ".."), ...to.slice(shared)].join("/");
}

function belowRoot({ root, calledRoot }: PlaceOfPaths["workspace"], path: string): string {
  for (const spelling of [root, calledRoot]) {
    if (path === spelling) return "";
    if (path.startsWith(`${spelling}/`)) return path.slice(spelling.length + 1);
  }
  throw forbidden("An absolute path must lie in the workspace; give one that is relative to it.");
}

// The path of a mistaken call may be the absolute one after all, behind a few dots.
function shown(path: string): string {
  return isAbsolute(path) ? "This path" : path.length > 200 ? `${path.slice(0, 200)}…` : path;
}
