import { mkdirSync, readdirSync, readlinkSync, rmSync } from "node:fs";
import { join, relative } from "node:path";
import { isTaken, stateFolders } from "../../../base/git-state-files.ts";
import type { Mount } from "./bubblewrap.ts";
import {
  type GitIndex,
  mergeIndexes,
  readGitIndex,
  withoutGitlinks,
  withStatesOf,
  writeGitIndex,
} from "./git-index.ts";
import { isSound } from "./git-index-names.ts";
import { tryLock, withLock } from "./git-lock.ts";
import {
  copyLink,
  exists,
  identityOf,
  inFolder,
  isFileOrFolder,
  lstatOf,
  readHeld,
  replace,
  withHeld,
} from "./held-files.ts";
import { borrowedObjects, removeObjects, renewObjects, takeObjects } from "./own-objects.ts";
import { refusalIn } from "./taken-files.ts";

/**
 * Commands see these and cannot change them. `modules` and `worktrees` contain other repositories. A person's Git writes to `rr-cache`
 * and `lfs` through links. The branches in a `reftable` would name objects before kit takes them over.
 */
const readOnly = ["config", "hooks", "modules", "worktrees", "rr-cache", "lfs", "reftable"];
/** Branches and their logs. A link in them would lead what a person's Git appends to another file. */
const branchFolders = ["refs", "logs"];
const takenFolders = [...stateFolders, ...branchFolders];
const copiedFolders = [...takenFolders, "info"];
/** The files of a linked worktree's repository that kit takes over. */
const takenBranches = /^(?:packed-refs$|refs\/|logs\/refs\/)/;
interface Repository {
  /** The Git folder of the workspace. */
  readonly folder: string;
  /** The folder that commands have in its place. */
  readonly copy: string;
  readonly hashBytes: number;
  readonly isTaken: (path: string) => boolean;
  /** The identities of both versions of a file when they last were the same. */
  readonly same: Map<string, { readonly original: string; readonly copied: string }>;
  /** The index of the copy at that time. */
  index: GitIndex | undefined;
  /** Whether the index of the repository had other entries at that time: those of another Git, or no new gitlinks. */
  isMerged: boolean;
  /** The stamp of the copy's folder of objects when it had none; undefined without such a folder. */
  stamp: string | undefined;
  /** The objects of the copy that kit has taken over. */
  readonly taken: Set<string>;
  users: number;
}

/** A repository as one command sees it. */
export interface OwnRepository {
  readonly mounts: readonly Mount[];
  /** The gitlinks of the index, relative to the root; undefined if kit cannot read them. */
  readonly gitlinks: readonly string[] | undefined;
  /** Takes over the objects that commands made until now. Returns a sentence if it left any. */
  takeObjects(): Promise<string | undefined>;
  /** Takes over what the command changed; call it after the command has ended. Returns sentences for its caller. */
  close(): Promise<readonly string[]>;
}

export interface RepositoryRequest {
  /** The Git folder of the workspace: absolute, without links. */
  readonly folder: string;
  /** The work tree of the workspace. */
  readonly root: string;
  /** Where kit makes copies. */
  readonly copies: string;
  /** Whether only objects and branches are taken over, for the repository of a linked worktree. */
  readonly isCommon?: boolean;
  /** The repository that has the objects of a linked worktree. */
  readonly common?: () => OwnRepository | undefined;
}

/**
 * The copies of this process, the last used one at the end. Commands at the same time share a copy, so that Git's locks work between
 * them; later ones use it again, as making and removing it takes longer than updating it.
 */
const opened = new Map<string, Repository>();
const maxIdle = 8;
let count = 0;

/**
 * Gives a command a copy of a repository's own files: its index, its HEAD and the like. No other Git reads the copy. After the
 * command, kit takes over the files that cannot make Git start a program, and the index without new gitlinks. If kit is killed before,
 * nothing is taken over. Undefined if the folder is no repository.
 */
export function openOwnRepository(request: RepositoryRequest): OwnRepository | undefined {
  const { folder, root, isCommon = false, common = () => undefined } = request;
  const key = `${isCommon} ${folder}`;
  return withHeld(folder, (held) => {
    if (readlinkSync(held) !== folder || !isRepository(held)) return undefined;
    const repository = opened.get(key) ?? createRepository(held, request);
    opened.delete(key);
    opened.set(key, repository);
    const hasObjects = lstatOf(join(held, "objects"))?.isDirectory() === true;
    const names = readOnly.filter((name) => isFileOrFolder(join(held, name)));
    if (repository.users === 0) {
      clean(repository, [...names, ...(hasObjects ? ["objects", borrowedObjects] : [])]);
      repository.taken.clear();
      repository.stamp = hasObjects ? renewObjects(repository.copy, repository.stamp) : undefined;
      // Without this folder, Git takes the copy for no repository.
      mkdirSync(join(repository.copy, "refs"), { recursive: true });
    }
    repository.users += 1;
    update(held, repository);
    let obstacle: string | undefined;
    const takeOwn = async (): Promise<string | undefined> => {
      // After the last command of the repository, the folder has been removed.
      if (hasObjects && repository.users > 0) obstacle ??= await takeObjects({ ...repository, root });
      return obstacle;
    };
    const seen = (name: string, path = name): Mount => ({
      source: join(folder, name),
      path: join(folder, path),
      write: false,
    });
    return {
      mounts: [
        { source: repository.copy, path: folder, write: true },
        ...names.map((name) => seen(name)),
        ...(hasObjects ? [seen("objects", borrowedObjects)] : []),
      ],
      gitlinks:
        repository.index === undefined && exists(join(held, "index"))
          ? undefined
          : [...(repository.index?.gitlinks ?? [])].map(latin1),
      takeObjects: takeOwn,
      async close() {
        try {
          return await takeOver(repository, { takeOwn, common: common() });
        } finally {
          repository.users -= 1;
          if (repository.users === 0) removeObjects(repository.copy, repository.stamp);
          forgetOldest();
        }
      },
    };
  });
}

/** A linked worktree has the objects of another repository. */
const isRepository = (held: string): boolean =>
  exists(join(held, "HEAD")) && ["objects", "commondir"].some((name) => exists(join(held, name)));

function createRepository(held: string, request: RepositoryRequest): Repository {
  const { folder, copies, isCommon = false } = request;
  count += 1;
  const copy = join(copies, `git-${count}`);
  mkdirSync(copy, { recursive: true, mode: 0o700 });
  const isSha256 = /objectformat\s*=\s*"?sha256/i.test(readHeld(held, "config")?.toString("latin1") ?? "");
  return {
    folder,
    copy,
    hashBytes: isSha256 ? 32 : 20,
    isTaken: (path) => isTaken(path) && !path.endsWith(".lock") && (!isCommon || takenBranches.test(path)),
    same: new Map(),
    index: undefined,
    isMerged: false,
    stamp: undefined,
    taken: new Set(),
    users: 0,
  };
}

function forgetOldest(): void {
  const idle = [...opened].filter(([, { users }]) => users === 0);
  for (const [key, { copy }] of idle.slice(0, -maxIdle)) {
    opened.delete(key);
    rmSync(copy, { recursive: true, force: true });
  }
}

/** Begins again if earlier commands left anything in the copy. The entries in `mounted` are only places for mounts. */
function clean(repository: Repository, mounted: readonly string[]): void {
  const { copy, same } = repository;
  const isKnown = (path: string): boolean =>
    identityOf(copy, path) === same.get(path)?.copied && same.has(path);
  const isLeft = readdirSync(copy, { withFileTypes: true }).some(({ name }) => {
    if (mounted.includes(name)) return !isFileOrFolder(join(copy, name));
    return !copiedFolders.includes(name) && !isKnown(name);
  });
  if (
    !isLeft &&
    !repository.isMerged &&
    [...same.keys()].every(isKnown) &&
    filesOf(copy, copiedFolders).every((path) => mounted.includes(path) || isKnown(path))
  )
    return;
  rmSync(copy, { recursive: true, force: true });
  mkdirSync(copy, { mode: 0o700 });
  same.clear();
  repository.isMerged = false;
}

/** Copies what another Git has changed since the last time, and no command. */
function update(held: string, repository: Repository): void {
  const { copy, same } = repository;
  const names = filesOf(held, copiedFolders).filter(
    (path) => ![...readOnly, "objects", borrowedObjects].includes(path) && !path.endsWith(".lock"),
  );
  for (const path of names) {
    const original = identityOf(held, path);
    const before = same.get(path);
    if (original === undefined) copyLink(join(held, path), join(copy, path));
    if (original === undefined || original === before?.original || identityOf(copy, path) !== before?.copied)
      continue;
    const bytes = readHeld(held, path);
    const lock = join(copy, "index.lock");
    // A command that changes its index now has read it before, so the other Git's entries come with the next merge.
    if (bytes === undefined || (path === "index" && !tryLock(lock)) || !isReplaced(copy, path, bytes))
      continue;
    same.set(path, { original, copied: identityOf(copy, path) ?? "" });
    if (path !== "index") continue;
    repository.index = readGitIndex(bytes, repository.hashBytes);
    repository.isMerged = false;
    rmSync(lock, { force: true });
  }
  for (const [path, before] of same) {
    if (names.includes(path) || identityOf(copy, path) !== before.copied) continue;
    same.delete(path);
    inFolder(copy, path, (entry) => rmSync(entry, { force: true }));
  }
}

/** False if a running command has put something else in the place of the file or its folder. */
function isReplaced(folder: string, path: string, bytes: Buffer): boolean {
  try {
    replace(folder, path, bytes);
    return true;
  } catch {
    return false;
  }
}

/** Takes the files over that commands have changed; those on which others depend come first. */
async function takeOver(
  repository: Repository,
  objects: {
    readonly takeOwn: OwnRepository["takeObjects"];
    readonly common: OwnRepository | undefined;
  },
): Promise<readonly string[]> {
  const { folder, copy, same } = repository;
  const names = new Set([...same.keys(), ...filesOf(copy, takenFolders)].filter(repository.isTaken));
  const changed = [...names]
    .sort((one, other) => orderOf(copy, one) - orderOf(copy, other))
    .map((path) => ({ path, copied: identityOf(copy, path) }))
    .filter(({ path, copied }) => copied !== same.get(path)?.copied);
  // After kit has looked at the files: another command may go on to make objects and files that name them.
  const obstacle = await objects.takeOwn();
  if (obstacle !== undefined) return [obstacle];
  // Its own end returns the sentence.
  if ((await objects.common?.takeObjects()) !== undefined) return [];
  const notes: string[] = [];
  for (const { path, copied } of changed) {
    const change = { path, copied, repository };
    const note = await withLock(folder, path, (held) => takeFile(held, change)).catch(
      (error: unknown) => `${path} of the repository cannot be written${reasonOf(error)}.`,
    );
    if (note !== undefined) notes.push(note);
  }
  return [...new Set(notes)];
}

/** A branch that is removed may be packed as well, and may make place for a folder; a branch comes before what names it. */
function orderOf(copy: string, path: string): number {
  if (path === "packed-refs") return 0;
  if (path === "index") return 4;
  if (!exists(join(copy, path))) return 1;
  return path.startsWith("refs/") ? 2 : 3;
}

interface Change {
  readonly path: string;
  readonly copied: string | undefined;
  readonly repository: Repository;
}

/** Returns why it did not take the file over as it is. The caller holds its lock. */
function takeFile(held: string, { path, copied, repository }: Change): string | undefined {
  const { copy, same } = repository;
  const original = identityOf(held, path);
  const isChanged = original !== same.get(path)?.original || (path === "index" && repository.isMerged);
  if (copied === undefined) {
    if (path === "HEAD" || path === "index") return undefined;
    // The branch may only have been packed, into a file that kit has not taken over.
    const isPackedTaken = identityOf(copy, "packed-refs") === same.get("packed-refs")?.copied;
    if (path.startsWith("refs/") && !isPackedTaken) return undefined;
    same.delete(path);
    if (!isChanged) inFolder(held, path, (entry) => rmSync(entry, { force: true }));
    return undefined;
  }
  const bytes = readHeld(copy, path);
  // The command that changed it meanwhile takes it over.
  if (bytes === undefined || identityOf(copy, path) !== copied) return undefined;
  if (isChanged && path.startsWith("logs/")) return undefined;
  if (isChanged && path !== "index")
    return `${path} of the repository was changed at the same time, and not taken over.`;
  const checked =
    path === "index"
      ? checkIndex(held, { bytes, isChanged, repository })
      : (refusalIn(held, path, bytes) ?? { bytes });
  if (typeof checked === "string") return checked;
  replace(held, path, checked.bytes);
  same.set(path, { original: identityOf(held, path) ?? "", copied });
  if (checked.index === undefined) return checked.note;
  repository.index = checked.index;
  repository.isMerged = isChanged || checked.note !== undefined;
  return checked.note;
}

interface Checked {
  readonly bytes: Buffer;
  readonly note?: string;
  /** The index of the copy. */
  readonly index?: GitIndex;
}

function checkIndex(
  held: string,
  {
    bytes,
    isChanged,
    repository,
  }: { readonly bytes: Buffer; readonly isChanged: boolean; readonly repository: Repository },
): Checked | string {
  const { hashBytes } = repository;
  const refused = "The index was not taken over: ";
  const ours = readGitIndex(bytes, hashBytes);
  const base = repository.index;
  if (ours === undefined) return `${refused}it is damaged or split.`;
  if (ours.isSparse && base?.isSparse !== true) return `${refused}the repository has no sparse checkout.`;
  const theirs = readGitIndex(readHeld(held, "index") ?? Buffer.alloc(0), hashBytes);
  if (isChanged && (theirs === undefined || base === undefined))
    return `${refused}it was changed at the same time.`;
  const merged =
    !isChanged || theirs === undefined || base === undefined ? ours : mergeIndexes(base, ours, theirs);
  if (!isSound(merged)) return `${refused}Git would not add files of such names to it.`;
  // Kit holds the folders of known gitlinks; another one could get a repository while the person's Git looks.
  const known = (theirs ?? base)?.gitlinks;
  const isAccepted = (path: string): boolean => known?.has(path) === true;
  const rejected = [...merged.gitlinks].filter((path) => !isAccepted(path)).map(latin1);
  const { index, marked } = withStatesOf(withoutGitlinks(merged, isAccepted), theirs, isSparseCheckout(held));
  const notes = [
    ...(rejected.length === 0
      ? []
      : [`The index was taken over without the submodules that the command added: ${rejected.join(", ")}.`]),
    ...(marked.length === 0
      ? []
      : [
          `The index was taken over without the marks that hide changes (assume-unchanged, skip-worktree): ${marked.slice(0, maxNamed).map(latin1).join(", ")}.`,
        ]),
  ];
  return {
    index: ours,
    bytes: writeGitIndex(index, hashBytes),
    ...(notes.length === 0 ? {} : { note: notes.join("\n") }),
  };
}

const maxNamed = 50;

/** Whether Git itself removes the mark "skip worktree" from files that exist. A command cannot change these settings. */
const isSparseCheckout = (held: string): boolean =>
  ["config", "config.worktree"].some((name) =>
    /^\s*sparsecheckout\s*(?:=\s*(?:true|yes|on|1)\s*)?$/im.test(
      readHeld(held, name)?.toString("latin1") ?? "",
    ),
  );

/** A name of the index as text. */
const latin1 = (name: string): string => Buffer.from(name, "latin1").toString();

/** The entries of a folder and of those below the named folders, other than folders. */
function filesOf(folder: string, folders: readonly string[]): readonly string[] {
  const entries = readdirSync(folder, { withFileTypes: true });
  return entries.flatMap((entry) => {
    if (!entry.isDirectory()) return [entry.name];
    if (!folders.includes(entry.name)) return [];
    return readdirSync(join(folder, entry.name), { withFileTypes: true, recursive: true })
      .filter((each) => !each.isDirectory())
      .map((each) => relative(folder, join(each.parentPath, each.name)));
  });
}

function reasonOf(error: unknown): string {
  return error instanceof Error && "code" in error ? ` (${String(error.code)})` : "";
}
