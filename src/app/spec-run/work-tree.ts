import { existsSync } from "node:fs";
import { rm } from "node:fs/promises";
import { join } from "node:path";
import { runGit } from "../../processes/git.ts";
import { differing, type Listing, Trees } from "../verify/trees.ts";
import type { TaskBranch } from "./task-branch.ts";

/** The work tree in which an agent does one task: linked to the user's repository, in kit's own folder. */
export class TaskWorkTree {
  readonly folder: string;
  readonly #branch: TaskBranch;
  readonly #signal: AbortSignal | undefined;

  constructor(branch: TaskBranch, folder: string, signal?: AbortSignal) {
    this.#branch = branch;
    this.folder = folder;
    this.#signal = signal;
  }

  /** The root of the project in it. */
  get root(): string {
    return this.#branch.projectIn(this.folder);
  }

  get exists(): boolean {
    return existsSync(join(this.folder, ".git"));
  }

  /** Makes it anew, with the files of a commit. */
  async create(commit: string): Promise<void> {
    await this.#branch.link(this.folder, commit);
    await this.reset(commit);
  }

  /** Gives it exactly the files of a tree, on top of a commit. Files that Git ignores stay. */
  async reset(commit: string, tree: string = commit): Promise<void> {
    await using trees = await this.#open();
    await runGit(["update-ref", "--no-deref", "HEAD", commit], { cwd: this.folder, signal: this.#signal });
    const [present, next] = [await trees.list(await trees.snapshot()), await trees.list(tree)];
    await this.#write(trees, { present, next });
    await runGit(["read-tree", commit], { cwd: this.folder, signal: this.#signal });
  }

  /**
   * Undoes the changes of some files: they get back what they have in `tree`. Returns the undone paths, from the top of the
   * repository.
   */
  async restore(tree: string, isProtected: (path: string) => boolean): Promise<readonly string[]> {
    await using trees = await this.#open();
    const [present, kept] = [await trees.list(await trees.snapshot()), await trees.list(tree)];
    const next = new Map([...present].filter(([path]) => !isProtected(path)));
    for (const [path, entry] of kept) if (isProtected(path)) next.set(path, entry);
    await this.#write(trees, { present, next });
    return differing(present, next);
  }

  /** Its present files as a tree in the repository. */
  async snapshot(): Promise<string> {
    await using trees = await this.#open();
    return await trees.snapshot();
  }

  /** The paths that differ between two trees. */
  async changed(tree: string, other: string): Promise<readonly string[]> {
    await using trees = await this.#open();
    return differing(await trees.list(tree), await trees.list(other));
  }

  async remove(): Promise<void> {
    await this.#branch.unlink(this.folder);
  }

  async #write(
    trees: Trees,
    { present, next }: { readonly present: Listing; readonly next: Listing },
  ): Promise<void> {
    for (const path of present.keys())
      if (!next.has(path)) await rm(join(this.folder, path), { recursive: true, force: true });
    const changed = new Map([...next].filter(([path, entry]) => present.get(path) !== entry));
    if (changed.size > 0) await trees.checkOut(changed, this.folder);
  }

  async #open(): Promise<Trees> {
    return await Trees.open(this.folder, { signal: this.#signal, keepsObjects: true });
  }
}
