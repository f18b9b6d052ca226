import { lstatSync } from "node:fs";
import { isAbsolute, join, relative, sep } from "node:path";
import { KitError } from "../../base/kit-error.ts";
import { type FindPlaceOptions, findPlace, type Place } from "../../files/find-place.ts";
import type { OuterRules } from "../../files/ignore-scope.ts";
import { forbidden, invalid, toFileError } from "../../files/obstacle.ts";
import type { IsolationOptions } from "../contract.ts";

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
    else if (names.pop() === undefined) throw forbidden(`${quotePath(path)} leads out of the workspace.`);
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
function quotePath(path: string): string {
  return isAbsolute(path) ? "This path" : path.length > 200 ? `${path.slice(0, 200)}…` : path;
}

/** Whether a path is a folder or lies below it; both absolute. */
export function isInside(folder: string, path: string): boolean {
  const from = relative(folder, path);
  return from === "" || (from !== ".." && !from.startsWith(`..${sep}`) && !isAbsolute(from));
}

/** A folder of this machine that a sandbox works in. */
export interface Workspace {
  /** Absolute, with links resolved. */
  readonly root: string;
  /** Absolute, as it was named: a link may have been on the way. */
  readonly calledRoot: string;
  /** The environment of every command. */
  readonly environment: () => Promise<Readonly<Record<string, string>>>;
  /** Ignore rules from above the root that searches follow. */
  readonly outerRules: () => readonly OuterRules[];
  readonly isolation: IsolationOptions;
  /** Folders of kit's own, absolute: commands see nothing of them. */
  readonly hidden: readonly string[];
  /** That of kit's own which a command could make where it is missing; it is made before one may. */
  readonly stateFolder?: string;
  /** Makes a folder for the homes and temporary files of walled commands, outside of the workspace. */
  readonly ownFolder: () => Promise<string>;
  /** Fires when the sandbox is closed: running commands end. */
  readonly closing: AbortSignal;
}

/** A workspace as one sandbox sees it: from its working folder. */
export interface View {
  readonly workspace: Workspace;
  /** Relative to the root; "" for the root. */
  readonly cwd: string;
}

type PlaceOptions = Pick<FindPlaceOptions, "createFolders" | "end">;

/** Finds the place of a caller's path, hands it to `work`, and closes it. Throws `not_found`. */
export async function withPlace<Value>(
  view: View,
  path: string,
  given: PlaceOptions & { readonly work: (place: Place) => Promise<Value> },
): Promise<Value> {
  const { work, ...options } = given;
  const inside = toWorkspacePath(view, path);
  if (Object.keys(options).length === 0 && isMissing(view.workspace.root, inside)) throw notFound(inside);
  const place = await findPlace({ root: view.workspace.root, path: inside, area: "workspace", ...options });
  if (place === undefined) throw notFound(inside);
  try {
    return await work(place);
  } catch (error) {
    const isOfSystem = error instanceof Error && "syscall" in error;
    throw isOfSystem ? toFileError(error, inside === "" ? "The workspace" : inside) : error;
  } finally {
    await place.close();
  }
}

/**
 * Whether the root has no entry of that name: before each prompt an agent looks for files that are mostly not
 * there, and finding that out by descriptors costs a hundred times as much. Deeper paths are not looked at
 * in this way: a link on the way could lead out, and the answer would tell what is there.
 */
function isMissing(root: string, inside: string): boolean {
  if (inside === "" || inside.includes("/")) return false;
  try {
    return lstatSync(join(root, inside), { throwIfNoEntry: false }) === undefined;
  } catch {
    return false;
  }
}

export const notFound = (path: string): KitError =>
  new KitError({ code: "not_found", message: `${path} does not exist.` });
