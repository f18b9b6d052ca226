import { lstatSync, readlinkSync } from "node:fs";
import { isAbsolute, join, relative, sep } from "node:path";
import { attempt } from "../../base/attempt.ts";
import { KitError } from "../../base/kit-error.ts";
import { type FindPlaceOptions, findPlace, type Place } from "../../files/find-place.ts";
import type { OuterRules } from "../../files/ignore-scope.ts";
import { forbidden, invalid, toFileError } from "../../files/obstacle.ts";
import { canHoldFolders } from "../../files/walk.ts";
import type { IsolationOptions } from "../contract.ts";

/** The root and the working folder that a path is resolved against. */
interface PathBase {
  readonly workspace: Pick<Workspace, "root" | "calledRoot">;
  readonly cwd: string;
}

/** The limit of Linux (PATH_MAX). */
const maxPathLength = 4096;

/**
 * Converts a caller's path to one relative to the root of the workspace; "" for the root itself. `..` is
 * resolved before any link is followed.
 *
 * Accepts absolute paths in the workspace, because programs print them. Throws `forbidden` for a path outside
 * the workspace (the message never repeats an absolute path), and `invalid_request` for a path that no file
 * can have.
 */
export function toWorkspacePath({ workspace, cwd }: PathBase, path: string): string {
  if (path.includes("\0")) throw invalid("A path cannot contain NUL characters.");
  if (path.length > maxPathLength) throw invalid(`A path can have at most ${maxPathLength} characters.`);
  const names: string[] = [];
  const from = isAbsolute(path) ? belowRoot(workspace, path) : `${cwd}/${path}`;
  for (const name of from.split("/")) {
    if (name === "" || name === ".") continue;
    if (name !== "..") names.push(name);
    else if (names.pop() === undefined) throw forbidden(`${quotePath(path)} leads out of the workspace.`);
  }
  return names.join("/");
}

/** Converts a path relative to the root to one relative to the working folder. */
export function fromWorkingFolder(cwd: string, path: string): string {
  if (cwd === "") return path;
  const from = cwd.split("/");
  const to = path.split("/");
  let shared = 0;
  while (shared < from.length && shared < to.length - 1 && from[shared] === to[shared]) shared += 1;
  return [...from.slice(shared).map(() => ".."), ...to.slice(shared)].join("/");
}

function belowRoot({ root, calledRoot }: PathBase["workspace"], path: string): string {
  for (const spelling of [root, calledRoot]) {
    if (path === spelling) return "";
    if (path.startsWith(`${spelling}/`)) return path.slice(spelling.length + 1);
  }
  throw forbidden("The absolute path lies outside the workspace. Use a path relative to the workspace.");
}

// Error messages must not repeat absolute paths of this machine.
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
  /** Absolute, as the caller named it; it may contain links. */
  readonly calledRoot: string;
  /** The environment of every command. */
  readonly environment: () => Promise<Readonly<Record<string, string>>>;
  /** Ignore rules from above the root that searches follow. */
  readonly outerRules: () => readonly OuterRules[];
  readonly isolation: IsolationOptions;
  /** Whether the folder belongs to people, who work in it with programs of their own. */
  readonly shared?: boolean;
  /** The `.kit` folder of the project. Records of running commands, from which kit cleans up if it was killed, belong to it. */
  readonly state?: string;
  /** Absolute paths of kit's own folders, which commands cannot see. */
  readonly hidden: readonly string[];
  /** The `.kit` folder in the workspace. If it is missing it is created before a command could create it. */
  readonly stateFolder?: string;
  /** Whether commands can read the repository of the folder, and change nothing in it. Default false. */
  readonly readsRepository?: boolean;
  /** Creates the folder outside the workspace for the home and temporary files of isolated commands. */
  readonly ownFolder: () => Promise<string>;
  /** Fires when the sandbox is closed: running commands end. */
  readonly closing: AbortSignal;
}

/** A workspace and the working folder of one sandbox. */
export interface View {
  readonly workspace: Workspace;
  /** Relative to the root; "" for the root. */
  readonly cwd: string;
}

type PlaceOptions = Pick<FindPlaceOptions, "createFolders" | "end">;

/** Opens the place of a caller's path, calls `work` with it, and closes it. Throws `not_found`. */
export async function withPlace<Value>(
  view: View,
  path: string,
  request: PlaceOptions & { readonly work: (place: Place) => Promise<Value> },
): Promise<Value> {
  const { work, ...options } = request;
  const inside = toWorkspacePath(view, path);
  if (Object.keys(options).length === 0 && isMissing(view.workspace.root, inside)) throw notFound(inside);
  const place = await findPlace({ root: view.workspace.root, path: inside, area: "workspace", ...options });
  if (place === undefined) throw notFound(inside);
  try {
    assertInside(view.workspace.root, place);
    return await work(place);
  } catch (error) {
    const isSystemError = error instanceof Error && "syscall" in error;
    throw isSystemError ? toFileError(error, inside === "" ? "The workspace" : inside) : error;
  } finally {
    await place.close();
  }
}

/** A command of a workspace around this one can put a link in the place of its root, and the link leads elsewhere. */
function assertInside(root: string, { folder }: Place): void {
  if (!canHoldFolders() || isInside(root, readlinkSync(folder))) return;
  throw new KitError({ code: "unavailable", message: "The folder of the workspace was moved or replaced." });
}

/**
 * Whether the root surely has no entry of that name. A shortcut: before each prompt an agent looks for files that
 * are mostly missing, and opening descriptors costs a hundred times as much. Not for deeper paths: a link on the
 * way could lead outside, and the answer would reveal what exists there.
 */
function isMissing(root: string, inside: string): boolean {
  if (inside === "" || inside.includes("/")) return false;
  return attempt(() => lstatSync(join(root, inside), { throwIfNoEntry: false }) === undefined, false);
}

export const notFound = (path: string): KitError =>
  new KitError({ code: "not_found", message: `${path} does not exist.` });
