import { lstatSync, readFileSync, realpathSync, statSync } from "node:fs";
import { dirname, join, relative, resolve, sep } from "node:path";
import { KitError } from "../../../base/kit-error.ts";
import { findPlace } from "../../../files/find-place.ts";
import { readGitIndex } from "./git-index.ts";
import { exists, identityOf, readHeld } from "./held-files.ts";

/**
 * The paths to hold read-only for gitlinks, which are relative to the root: Git runs in the folder of each gitlink that has a repository,
 * with the settings of that repository. Creates missing folders. Throws `unavailable` for a place that is no plain folder.
 */
export async function placesOfGitlinks(root: string, gitlinks: Iterable<string>): Promise<readonly string[]> {
  const held = [...new Set(gitlinks)].map(async (path) => {
    const place = await findPlace({ root, path, createFolders: true, end: "folder" }).catch(() => undefined);
    await place?.close();
    if (place?.path !== path || path.includes("\ufffd"))
      throw new KitError({
        code: "unavailable",
        message: `The command was not run: ${path} is a submodule in the index, and its place has something other than a folder, or lies behind a link.`,
        hint: "Remove the submodule from the index (git rm --cached), or put a folder in its place.",
      });
    const entry = join(root, path, ".git");
    return lstatSync(entry, { throwIfNoEntry: false }) === undefined ? join(root, path) : entry;
  });
  return await Promise.all(held);
}

/**
 * The gitlinks below the root, relative to it, of further repositories: those with one of the entries `.git`, relative to the root, and
 * those around the workspace. Throws `unavailable` if kit cannot read them.
 */
export function furtherGitlinks(root: string, entries: readonly string[]): readonly string[] {
  const below = entries.flatMap((entry) => {
    const folder = dirname(join(root, entry));
    const place = relative(root, folder);
    return gitlinksAt(folder, `the repository ${place === "" ? "of the workspace" : `in ${place}`}`).map(
      (path) => (place === "" ? path : `${place}/${path}`),
    );
  });
  const around: string[] = [];
  for (let folder = root; folder !== dirname(folder); ) {
    folder = dirname(folder);
    const prefix = `${relative(folder, root).split(sep).join("/")}/`;
    for (const path of gitlinksAt(folder, "a repository around the workspace"))
      if (path.startsWith(prefix)) around.push(path.slice(prefix.length));
  }
  return [...below, ...around];
}

/** Throws `unavailable`, because a command could make repositories in places of submodules that kit does not know. */
export function unreadableIndex(repository: string): KitError {
  return new KitError({
    code: "unavailable",
    message: `The command was not run: the index of ${repository} is split or damaged, so kit cannot protect the places of its submodules.`,
    hint: "Run 'git update-index --no-split-index' there, and set core.splitIndex to false.",
  });
}

/** The gitlinks of each index, as long as it stays the same file. */
const known = new Map<string, { readonly identity: string; readonly gitlinks: readonly string[] }>();
const maxKnown = 1_000;

/** The gitlinks of the repository whose `.git` is in a folder, relative to that folder. */
function gitlinksAt(folder: string, name: string): readonly string[] {
  const gitFolder = gitFolderOf(folder);
  if (gitFolder === undefined) return [];
  const identity = identityOf(gitFolder, "index");
  const before = known.get(gitFolder);
  if (identity !== undefined && identity === before?.identity) return before.gitlinks;
  if (identity === undefined) {
    if (!exists(join(gitFolder, "index"))) return [];
    throw unreadableIndex(name);
  }
  const bytes = readHeld(gitFolder, "index");
  // An index has no mark of its hashes; one of the other kind is damaged.
  const index = bytes === undefined ? undefined : (readGitIndex(bytes, 20) ?? readGitIndex(bytes, 32));
  if (index === undefined) throw unreadableIndex(name);
  const gitlinks = [...index.gitlinks].map((path) => Buffer.from(path, "latin1").toString());
  if (known.size >= maxKnown) known.clear();
  known.set(gitFolder, { identity, gitlinks });
  return gitlinks;
}

/** The folder that Git uses by the `.git` of a folder, which can be a link or a file with a path. */
function gitFolderOf(folder: string): string | undefined {
  const entry = join(folder, ".git");
  try {
    const stats = statSync(entry, { throwIfNoEntry: false });
    if (stats?.isDirectory() === true) return realpathSync(entry);
    if (stats?.isFile() !== true || stats.size > maxPathBytes) return undefined;
    const path = /^gitdir: ([^\0]+?)[\r\n]*$/.exec(readFileSync(entry, "utf8"))?.[1];
    return path === undefined ? undefined : realpathSync(resolve(folder, path));
  } catch {
    // This user has no rights to it, or the path leads nowhere: Git finds no repository.
    return undefined;
  }
}

const maxPathBytes = 8_192;
