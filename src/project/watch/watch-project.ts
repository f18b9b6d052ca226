import { type FSWatcher, watch } from "node:fs";
import { join } from "node:path";
import { findGitFolder } from "../../files/git-folder.ts";
import type { ScanSummary } from "../project.ts";
import type { ProjectIndex } from "../project-index.ts";
import { parentOf } from "../scan/tree.ts";

/** Changes within so many milliseconds are one pass. */
const quietMs = 5;
/** Git writes its log just before it makes a commit, so the head is read again after these times. */
const commitLooksMs = [0, 100, 1_000, 5_000];
/** The interval between passes while the system cannot watch the tree. */
const pollMs = 2000;

export interface WatchProjectOptions {
  readonly onChange?: ((summary: ScanSummary) => void) | undefined;
  /** Called once when watching fails; from then on a pass runs every two seconds. */
  readonly onError?: ((error: unknown) => void) | undefined;
}

/**
 * Keeps an index current until it is closed. Changes at the same time (a checkout, an editor's write, rename and delete) cause
 * one pass; a pass scans only the folders that changed.
 */
export class ProjectWatch {
  readonly #index: ProjectIndex;
  readonly #options: WatchProjectOptions;
  readonly #folderWatch: FolderWatch;
  readonly #gitWatches: readonly FSWatcher[];
  readonly #repository: ReturnType<ProjectIndex["repository"]["open"]>;
  /** The folders that the next pass scans. */
  readonly #dirty = new Set<string>();
  #isEverythingDirty = false;
  #isGitDirty = false;
  #timer: NodeJS.Timeout | undefined;
  #poll: NodeJS.Timeout | undefined;
  #commitTimers: readonly NodeJS.Timeout[] = [];
  #running: Promise<void> | undefined;
  #isClosed = false;
  /** The state of the index that `onChange` was last called for. A pass of another caller can find a change first. */
  #reportedGeneration: number;

  constructor(index: ProjectIndex, options: WatchProjectOptions) {
    this.#index = index;
    this.#options = options;
    this.#reportedGeneration = index.generation();
    this.#repository = index.repository.open();
    this.#folderWatch = createFolderWatch({
      root: index.root,
      onChange: (folder) => this.#folderChanged(folder),
      onError: (error) => this.#failed(error),
    });
    this.#gitWatches = watchGit(index.root, () => this.#committed());
    this.#folderWatch.setFolders(index.tree().keys());
  }

  /** Finds changes between the last pass and the first watch, and watches the folders that the first pass of the project finds. */
  async begin(): Promise<void> {
    await this.#index.refresh();
    if (this.#isClosed) return;
    for (const folder of this.#folderWatch.setFolders(this.#index.tree().keys())) this.#dirty.add(folder);
    if (this.#dirty.size > 0) this.#schedule();
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    clearTimeout(this.#timer);
    clearInterval(this.#poll);
    this.#stopCommitTimers();
    this.#folderWatch.close();
    for (const watcher of this.#gitWatches) watcher.close();
    await this.#repository.close();
    await this.#running;
  }

  #schedule(): void {
    if (this.#isClosed || this.#running !== undefined || this.#timer !== undefined) return;
    this.#timer = setTimeout(() => {
      this.#timer = undefined;
      this.#running = this.#runPass().finally(() => {
        this.#running = undefined;
        if (this.#dirty.size > 0 || this.#isEverythingDirty || this.#isGitDirty) this.#schedule();
      });
    }, quietMs);
  }

  async #runPass(): Promise<void> {
    const index = this.#index;
    const folders = this.#isEverythingDirty ? undefined : [...this.#dirty];
    this.#dirty.clear();
    this.#isEverythingDirty = false;
    this.#isGitDirty = false;
    try {
      const summary = await index.refresh(folders === undefined ? {} : { folders });
      for (const folder of this.#folderWatch.setFolders(index.tree().keys())) this.#dirty.add(folder);
      const generation = index.generation();
      if (this.#isClosed || generation === this.#reportedGeneration) return;
      this.#reportedGeneration = generation;
      this.#options.onChange?.(summary);
    } catch (error) {
      if (this.#isClosed) return;
      this.#isEverythingDirty = true;
      this.#failed(error);
    }
  }

  #folderChanged(folder: string | undefined): void {
    if (folder === undefined) this.#isEverythingDirty = true;
    else if (this.#index.tree().has(folder)) this.#dirty.add(folder);
    else return;
    this.#repository.changed();
    this.#schedule();
  }

  #committed(): void {
    this.#stopCommitTimers();
    this.#repository.changed();
    const check = (): void => {
      this.#isGitDirty = true;
      this.#schedule();
    };
    this.#commitTimers = commitLooksMs.map((ms) => setTimeout(check, ms).unref());
  }

  #stopCommitTimers(): void {
    for (const timer of this.#commitTimers) clearTimeout(timer);
  }

  /** Reports that watching failed, and polls from then on. */
  #failed(error: unknown): void {
    if (this.#poll !== undefined || this.#isClosed) return;
    this.#options.onError?.(error);
    // A pass does not see every change.
    void this.#repository.close();
    this.#poll = setInterval(() => {
      this.#isEverythingDirty = true;
      this.#schedule();
    }, pollMs);
    this.#poll.unref();
  }
}

/**
 * Git appends to one file whenever another commit is checked out, which only dates depend on, and replaces another one whenever it
 * tracks other files.
 */
function watchGit(root: string, onChange: () => void): readonly FSWatcher[] {
  const git = findGitFolder(root);
  if (git === undefined) return [];
  const watchFile = (folder: string, name: string): FSWatcher[] => {
    try {
      const watcher = watch(folder, (_event, file) => {
        if (file === null || file === name) onChange();
      });
      watcher.on("error", () => watcher.close());
      return [watcher];
    } catch {
      // Without the file, or where it cannot be watched, its news waits for the next change of a source.
      return [];
    }
  };
  return [...watchFile(join(git.own, "logs"), "HEAD"), ...watchFile(git.own, "index")];
}

/** Watches folders of a project for changes in them. */
interface FolderWatch {
  /**
   * Watches exactly these folders from now on; paths are relative to the root. Returns the new ones: earlier changes in them were
   * missed.
   */
  setFolders(paths: Iterable<string>): readonly string[];
  close(): void;
}

interface WatchFoldersOptions {
  /** Absolute, with links resolved. */
  readonly root: string;
  /** A folder in which something changed; undefined when that is not known. */
  readonly onChange: (folder: string | undefined) => void;
  /** Called when the system cannot watch any more, or not all folders. */
  readonly onError: (error: unknown) => void;
}

/**
 * Watches only the folders of a project: with one watch per folder on Linux, which has no recursive watch, and with one watch of
 * the root elsewhere. The caller finds out what has changed.
 */
function createFolderWatch(options: WatchFoldersOptions): FolderWatch {
  return process.platform === "linux" ? watchEach(options) : watchRoot(options);
}

function watchEach({ root, onChange, onError }: WatchFoldersOptions): FolderWatch {
  const watchers = new Map<string, FSWatcher>();
  const open = (path: string): boolean => {
    try {
      const watcher = watch(path === "" ? root : `${root}/${path}`, () => onChange(path));
      watcher.on("error", (error) => {
        drop(path);
        // A folder that is deleted ends its watch with an error on some systems.
        onChange(parentOf(path));
        if (!isMissing(error)) onError(error);
      });
      watchers.set(path, watcher);
      return true;
    } catch (error) {
      if (!isMissing(error)) onError(error);
      return false;
    }
  };
  const drop = (path: string): void => {
    watchers.get(path)?.close();
    watchers.delete(path);
  };
  return {
    setFolders(paths) {
      const expected = new Set(paths);
      for (const path of watchers.keys()) if (!expected.has(path)) drop(path);
      return [...expected].filter((path) => !watchers.has(path) && open(path));
    },
    close() {
      for (const path of [...watchers.keys()]) drop(path);
    },
  };
}

function watchRoot({ root, onChange, onError }: WatchFoldersOptions): FolderWatch {
  const watcher = watch(root, { recursive: true }, (_event, file) => {
    onChange(file === null ? undefined : parentOf(file.replaceAll("\\", "/")));
  });
  watcher.on("error", onError);
  return { setFolders: () => [], close: () => watcher.close() };
}

function isMissing(error: unknown): boolean {
  return error instanceof Error && "code" in error && (error.code === "ENOENT" || error.code === "ENOTDIR");
}
