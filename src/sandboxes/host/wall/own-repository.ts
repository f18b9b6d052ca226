import {
  closeSync,
  mkdirSync,
  openSync,
  readdirSync,
  readlinkSync,
  rmdirSync,
  rmSync,
  symlinkSync,
  unlinkSync,
} from "node:fs";
import { basename, dirname, join } from "node:path";
import { setTimeout } from "node:timers/promises";
import { hasCode } from "../../../files/obstacle.ts";
import { folderFlags, heldPath } from "../../../files/walk.ts";
import type { Mount } from "./bubblewrap.ts";
import { type GitIndex, mergeIndexes, readGitIndex, withoutGitlinks, writeGitIndex } from "./git-index.ts";
import {
  exists,
  identityOf,
  inFolder,
  isFileOrFolder,
  lstatOf,
  readHeld,
  replace,
  withHeld,
} from "./held-files.ts";

/** The folders of a repository that commands change directly. They hold data only: no settings, and no index. */
const shared = ["objects", "refs", "logs", "reftable", "rr-cache", "lfs"];
/** Commands see these and cannot change them. `modules` and `worktrees` contain other repositories. */
const readOnly = ["config", "hooks", "modules", "worktrees"];
/** The folders of an unfinished rebase, cherry-pick or revert. */
const stateFolders = ["rebase-merge", "rebase-apply", "sequencer"];
const copiedFolders = [...stateFolders, "info"];
/** The files that kit takes over. None of them makes Git start a program, except for steps of a rebase and gitlinks. */
const taken = new RegExp(
  `^(?:HEAD|packed-refs|shallow|index|(?:ORIG|FETCH|MERGE|CHERRY_PICK|REVERT|REBASE)_HEAD|MERGE_(?:MSG|MODE|RR|AUTOSTASH)|AUTO_MERGE|SQUASH_MSG|COMMIT_EDITMSG|TAG_EDITMSG|BISECT_[A-Z_]+|(?:${stateFolders.join("|")})/[\\w.-]+)$`,
);

/** How long kit waits for another Git process to give up its lock. */
const lockWaitMs = 2_000;

interface Repository {
  /** The Git folder of the workspace. */
  readonly folder: string;
  /** The top of the work tree. */
  readonly root: string;
  /** The folder that commands have in its place. */
  readonly copy: string;
  readonly hashBytes: number;
  /** The identities of both versions of a file when they last were the same. */
  readonly same: Map<string, { readonly original: string; readonly copied: string }>;
  /** The index of the copy at that time. */
  index: GitIndex | undefined;
  /** Whether the index of the repository had other entries at that time: those of another Git, or no new gitlinks. */
  isMerged: boolean;
  users: number;
}

/** A repository as one command sees it. */
export interface OwnRepository {
  readonly mounts: readonly Mount[];
  /** The gitlinks of the index, relative to the root. */
  readonly gitlinks: readonly string[];
  /** Takes over what the command changed; call it after the command has ended. Returns sentences for its caller. */
  close(): Promise<readonly string[]>;
}

export interface RepositoryRequest {
  /** The Git folder of the workspace: absolute, without links. */
  readonly folder: string;
  /** The top of the work tree. */
  readonly root: string;
  /** Where kit makes copies. */
  readonly copies: string;
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
  const { folder } = request;
  return withHeld(folder, (held) => {
    if (readlinkSync(held) !== folder || !isRepository(held)) return undefined;
    const repository = opened.get(folder) ?? createRepository(held, request);
    opened.delete(folder);
    opened.set(folder, repository);
    const names = [...shared, ...readOnly].filter((name) => isFileOrFolder(join(held, name)));
    if (repository.users === 0) clean(repository, names);
    repository.users += 1;
    update(held, repository);
    return {
      mounts: [
        { source: repository.copy, path: folder, write: true },
        ...names
          .map((name) => join(folder, name))
          .map((path) => ({ source: path, path, write: shared.includes(basename(path)) })),
      ],
      gitlinks: [...(repository.index?.gitlinks ?? [])],
      async close() {
        try {
          return await takeOver(repository);
        } finally {
          repository.users -= 1;
          forgetOldest();
        }
      },
    };
  });
}

/** A linked worktree has the objects of another repository. */
const isRepository = (held: string): boolean =>
  exists(join(held, "HEAD")) && ["objects", "commondir"].some((name) => exists(join(held, name)));

function createRepository(held: string, { folder, root, copies }: RepositoryRequest): Repository {
  count += 1;
  const copy = join(copies, `git-${count}`);
  mkdirSync(copy, { recursive: true, mode: 0o700 });
  if (!exists(join(held, "logs"))) mkdirSync(join(held, "logs"));
  const isSha256 = /objectformat\s*=\s*"?sha256/i.test(readHeld(held, "config")?.toString("latin1") ?? "");
  return {
    folder,
    root,
    copy,
    hashBytes: isSha256 ? 32 : 20,
    same: new Map(),
    index: undefined,
    isMerged: false,
    users: 0,
  };
}

function forgetOldest(): void {
  const idle = [...opened.values()].filter(({ users }) => users === 0);
  for (const { folder, copy } of idle.slice(0, -maxIdle)) {
    opened.delete(folder);
    rmSync(copy, { recursive: true, force: true });
  }
}

/** Removes what earlier commands left in the copy. The entries in `mounted` are only places for mounts. */
function clean(repository: Repository, mounted: readonly string[]): void {
  const { copy, same } = repository;
  for (const [path, { copied }] of same) {
    if (identityOf(copy, path) !== copied || (path === "index" && repository.isMerged)) same.delete(path);
  }
  const kept = new Set([...same.keys()].flatMap((path) => [path, dirname(path)]));
  for (const { name, parentPath } of readdirSync(copy, { withFileTypes: true })) {
    const isPlace = mounted.includes(name) && isFileOrFolder(join(parentPath, name));
    if (!isPlace && !kept.has(name)) rmSync(join(copy, name), { recursive: true, force: true });
  }
  for (const path of filesOf(copy, copiedFolders)) {
    if (path.includes("/") && !kept.has(path))
      inFolder(copy, path, (entry) => rmSync(entry, { force: true }));
  }
}

/** Copies what another Git has changed since the last time, and no command. */
function update(held: string, repository: Repository): void {
  const { copy, same } = repository;
  const names = filesOf(held, copiedFolders).filter(
    (path) => !readOnly.includes(path) && !path.endsWith(".lock"),
  );
  for (const path of names) {
    const original = identityOf(held, path);
    const before = same.get(path);
    if (original === undefined) copyLink(join(held, path), join(copy, path));
    if (original === undefined || original === before?.original || identityOf(copy, path) !== before?.copied)
      continue;
    const bytes = readHeld(held, path);
    if (bytes === undefined) continue;
    const lock = join(copy, "index.lock");
    // A command that changes its index now has read it before, so the other Git's entries come with the next merge.
    if (path === "index" && !tryLock(lock)) continue;
    replace(copy, path, bytes);
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

/** Takes the files over that commands have changed; those on which others depend come first. */
async function takeOver(repository: Repository): Promise<readonly string[]> {
  const { folder, copy, same } = repository;
  const names = new Set([...same.keys(), ...filesOf(copy, stateFolders)].filter((path) => taken.test(path)));
  const notes: string[] = [];
  for (const path of [...names].sort((one, other) => Number(one === "index") - Number(other === "index"))) {
    const copied = identityOf(copy, path);
    if (copied === same.get(path)?.copied) continue;
    const change = { path, copied, repository };
    const note = await withLock(folder, path, (held) => takeFile(held, change)).catch(
      (error: unknown) => `${path} of the repository cannot be written${reasonOf(error)}.`,
    );
    if (note !== undefined) notes.push(note);
  }
  return notes;
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
    same.delete(path);
    if (!isChanged) inFolder(held, path, (entry) => rmSync(entry, { force: true }));
    return undefined;
  }
  const bytes = readHeld(copy, path);
  if (bytes === undefined) return undefined;
  if (isChanged && path !== "index")
    return `${path} of the repository was changed at the same time, and not taken over.`;
  const checked =
    path === "index" ? checkIndex(held, { bytes, isChanged, repository }) : checkFile(path, bytes);
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

function checkFile(path: string, bytes: Buffer): Checked | string {
  const text = bytes.toString("latin1");
  if (path === "HEAD" && !/^(?:ref: refs\/[^\0\n]{1,1000}|[0-9a-f]{40,64})\n?$/.test(text))
    return "HEAD was not taken over: it names no branch and no commit.";
  if (/todo/.test(path) && /^\s*(?:x|exec)\b/m.test(text))
    return "The rebase was not taken over: its next steps run programs.";
  return { bytes };
}

function checkIndex(
  held: string,
  {
    bytes,
    isChanged,
    repository,
  }: { readonly bytes: Buffer; readonly isChanged: boolean; readonly repository: Repository },
): Checked | string {
  const { hashBytes, root } = repository;
  const refused = "The index was not taken over: ";
  const ours = readGitIndex(bytes, hashBytes);
  const base = repository.index;
  if (ours === undefined) return `${refused}it is damaged or split.`;
  if (ours.isSparse && base?.isSparse !== true) return `${refused}the repository has no sparse checkout.`;
  const theirs = isChanged ? readGitIndex(readHeld(held, "index") ?? Buffer.alloc(0), hashBytes) : undefined;
  if (isChanged && (theirs === undefined || base === undefined))
    return `${refused}it was changed at the same time.`;
  const merged = theirs === undefined || base === undefined ? ours : mergeIndexes(base, ours, theirs);
  const known = theirs?.gitlinks ?? base?.gitlinks;
  // A repository can be put into an empty folder of a submodule while other commands run.
  const isAccepted = (path: string): boolean =>
    known?.has(path) === true || (repository.users === 1 && !exists(join(root, latin1(path), ".git")));
  const rejected = [...merged.gitlinks].filter((path) => !isAccepted(path)).map(latin1);
  return {
    index: ours,
    bytes: writeGitIndex(withoutGitlinks(merged, isAccepted), hashBytes),
    ...(rejected.length === 0
      ? {}
      : {
          note: `The index was taken over without the repositories that the command added: ${rejected.join(", ")}.`,
        }),
  };
}

/** A name of the index as text. */
const latin1 = (name: string): string => Buffer.from(name, "latin1").toString();

/** The files of a folder, and of those of the named folders in it. */
function filesOf(folder: string, folders: readonly string[]): readonly string[] {
  return readdirSync(folder, { withFileTypes: true }).flatMap((entry) => {
    if (!entry.isDirectory()) return [entry.name];
    if (!folders.includes(entry.name)) return [];
    const inner =
      withHeld(join(folder, entry.name), (held) => readdirSync(held, { withFileTypes: true })) ?? [];
    return inner.filter((each) => each.isFile()).map((each) => `${entry.name}/${each.name}`);
  });
}

/** Calls `work` while kit has Git's lock of a file. Returns a sentence if another process keeps the lock. */
async function withLock(
  folder: string,
  path: string,
  work: (held: string) => string | undefined,
): Promise<string | undefined> {
  const descriptor = openSync(folder, folderFlags);
  const held = heldPath(descriptor);
  try {
    // Git locks only files in the folder itself.
    if (path.includes("/")) return finishFolder(held, dirname(path), work(held));
    const lock = `${join(held, path)}.lock`;
    const end = performance.now() + lockWaitMs;
    while (!tryLock(lock)) {
      if (performance.now() > end)
        return `${path} of the repository is locked by another Git process, and was not taken over.`;
      await setTimeout(20);
    }
    try {
      return work(held);
    } finally {
      unlinkSync(lock);
    }
  } finally {
    closeSync(descriptor);
  }
}

function tryLock(lock: string): boolean {
  try {
    closeSync(openSync(lock, "wx"));
    return true;
  } catch (error) {
    if (hasCode(error, "EEXIST")) return false;
    throw error;
  }
}

/** Removes the folder of a rebase that has ended. */
function finishFolder(held: string, folder: string, note: string | undefined): string | undefined {
  try {
    rmdirSync(join(held, folder));
  } catch {
    // It has other files, or a command never made it.
  }
  return note;
}

function reasonOf(error: unknown): string {
  return error instanceof Error && "code" in error ? ` (${String(error.code)})` : "";
}

function copyLink(link: string, copy: string): void {
  const stats = lstatOf(link);
  if (stats?.isSymbolicLink() === true && !exists(copy)) symlinkSync(readlinkSync(link), copy);
}
