import { copyFile, mkdir, mkdtemp, realpath, utimes } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { KitError } from "../../base/kit-error.ts";
import { type GitArguments, type GitResult, type RunGitOptions, runGit } from "../../processes/git.ts";
import { findBase, findMergeBase } from "../../project/scan/git/git-state.ts";
import { readObjects } from "../../project/scan/git/read-objects.ts";
import { removeAtExit, removeNow } from "../../sandboxes/host/wall/own-folders.ts";

/** The files of a tree by path from the top of the repository: `<mode> <object>`. */
export type Listing = ReadonlyMap<string, string>;

/** The paths, sorted, that only one of two listings has, or that have another object there. */
export function differing(one: Listing, other: Listing): readonly string[] {
  return [...new Set([...one.keys(), ...other.keys()])]
    .filter((path) => one.get(path) !== other.get(path))
    .sort();
}

interface TreesParts {
  readonly top: string;
  readonly prefix: string;
  /** The temporary folder. */
  readonly folder: string;
  /** The objects and the index of the repository. */
  readonly objects: string;
  readonly index: string;
  readonly signal: AbortSignal | undefined;
  readonly keepsObjects: boolean;
}

/**
 * The trees of a repository that a judge works with. Its own objects and indexes lie in a temporary folder: the repository, its index
 * and its work tree are only read. Every call of Git is kit's hardened one, so that no filter of the repository runs.
 */
export class Trees implements AsyncDisposable {
  /** The top folder of the work tree. */
  readonly top: string;
  /** The path from the top to the project, with a slash at its end; empty for the top itself. */
  readonly prefix: string;
  readonly #parts: TreesParts;
  #indexes = 0;

  private constructor(parts: TreesParts) {
    this.top = parts.top;
    this.prefix = parts.prefix;
    this.#parts = parts;
  }

  /**
   * Throws `unavailable` outside of a work tree of Git. `keepsObjects` puts new objects into the repository, for trees that become
   * commits.
   */
  static async open(
    root: string,
    {
      signal,
      keepsObjects = false,
    }: { readonly signal?: AbortSignal | undefined; readonly keepsObjects?: boolean } = {},
  ): Promise<Trees> {
    const question = ["--show-toplevel", "--show-prefix", "--git-path", "objects", "--git-path", "index"];
    const [top = "", prefix = "", objects = "", index = ""] = textOf(
      await runGit(["rev-parse", ...question], { cwd: root, signal }),
      "This is not a work tree of Git, and a verdict is about a change that Git knows.",
    ).split("\n");
    const folder = await realpath(await mkdtemp(join(tmpdir(), "kit-verify-")));
    removeAtExit(folder);
    await mkdir(join(folder, "objects"));
    return new Trees({
      top,
      prefix,
      folder,
      objects: resolve(root, objects),
      index: resolve(root, index),
      signal,
      keepsObjects,
    });
  }

  /**
   * The commit that a change began with: the merge base of HEAD with a revision. Without a revision, with the branch that the remote
   * calls its main one, else with `main` or `master`; on that branch itself, HEAD.
   */
  async base(since: string | undefined): Promise<string> {
    const repository = { root: this.top, ...(this.#parts.signal && { signal: this.#parts.signal }) };
    if (since !== undefined) return await findBase({ ...repository, since });
    for (const name of ["refs/remotes/origin/HEAD", "refs/heads/main", "refs/heads/master", "HEAD"]) {
      const base = await findMergeBase(repository, [name, "HEAD"]);
      if (base !== undefined) return base;
    }
    throw new KitError({
      code: "unavailable",
      message: "The repository has no commit to compare with.",
      hint: "Commit what was there before the change, or name a revision: --since HEAD~1. A shallow clone may need: git fetch --unshallow.",
    });
  }

  /** The present work tree as a tree of Git: with what is not committed, without what is ignored. */
  async snapshot(): Promise<string> {
    const index = this.#newIndex();
    // The present index knows what a sparse checkout leaves out. Git takes a file for unchanged if its size and second are those of
    // the index, unless the index is older than that: so this one is, and Git reads every file.
    const hasIndex = await copyFile(this.#parts.index, index).then(
      () => utimes(index, 1, 1).then(() => true),
      () => false,
    );
    if (!hasIndex) await this.#run(["read-tree", "HEAD"], { index });
    await this.#run(["add", "--all"], { index });
    return (await this.#run(["write-tree"], { index })).trim();
  }

  /** The files of a tree or commit; submodules are left out. */
  async list(tree: string): Promise<Listing> {
    const files = new Map<string, string>();
    for (const line of (await this.#run(["ls-tree", "-r", "-z", "--full-tree", tree])).split("\0")) {
      const file = /^(\d+) blob ([0-9a-f]+)\t(.+)$/s.exec(line);
      if (file !== null) files.set(file[3] ?? "", `${file[1]} ${file[2]}`);
    }
    return files;
  }

  /** The tree of a listing. */
  async write(listing: Listing): Promise<string> {
    const index = await this.#fill(listing);
    return (await this.#run(["write-tree"], { index })).trim();
  }

  /** The tree with other entries at some paths; `undefined` removes one. Submodules stay. */
  async replace(tree: string, entries: ReadonlyMap<string, string | undefined>): Promise<string> {
    const index = this.#newIndex();
    await this.#run(["read-tree", tree], { index });
    const none = "0".repeat(tree.length);
    const input = Array.from(entries, ([path, entry]) => `${entry ?? `0 ${none}`}\t${path}\0`).join("");
    await this.#run(["update-index", "-z", "--index-info"], { index, input });
    return (await this.#run(["write-tree"], { index })).trim();
  }

  /** The object of a text. */
  async hash(text: string): Promise<string> {
    return (await this.#run(["hash-object", "-w", "--stdin"], { input: text })).trim();
  }

  /** Writes the files of a listing into a folder. */
  async checkOut(listing: Listing, folder: string): Promise<void> {
    const index = await this.#fill(listing);
    await this.#run(["checkout-index", "--all", "--force", `--prefix=${folder}/`], { index });
  }

  /** The texts of regular files of a listing, by path; without those that it does not have, and without links. */
  async texts(listing: Listing, paths: readonly string[]): Promise<ReadonlyMap<string, string>> {
    const blobs = paths.flatMap((path) => {
      const [mode, object] = listing.get(path)?.split(" ") ?? [];
      return object !== undefined && mode !== "120000" ? [{ path, object }] : [];
    });
    const contents = await readObjects(
      blobs.map(({ object }) => object),
      this.#options,
    );
    if (contents === undefined)
      throw new KitError({
        code: "unavailable",
        message: "The objects of the repository cannot be read.",
      });
    return new Map(
      blobs.flatMap(({ path }, at) =>
        contents[at] === undefined ? [] : [[path, contents[at].toString()] as const],
      ),
    );
  }

  /** A new folder that ends with these trees. */
  async emptyFolder(): Promise<string> {
    return await mkdtemp(join(this.#parts.folder, "files-"));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await removeNow(this.#parts.folder);
  }

  async #fill(listing: Listing): Promise<string> {
    const index = this.#newIndex();
    const input = Array.from(listing, ([path, entry]) => `${entry}\t${path}\0`).join("");
    await this.#run(["update-index", "-z", "--index-info"], { index, input });
    return index;
  }

  #newIndex(): string {
    this.#indexes += 1;
    return join(this.#parts.folder, `index${this.#indexes}`);
  }

  async #run(
    command: GitArguments,
    options: { readonly index?: string; readonly input?: string } = {},
  ): Promise<string> {
    return textOf(
      await runGit(command, { ...this.#options, ...options }),
      `Git could not do its part (${command[0]}).`,
    );
  }

  get #options(): RunGitOptions {
    const newObjects = { folder: join(this.#parts.folder, "objects"), repository: this.#parts.objects };
    return {
      cwd: this.top,
      signal: this.#parts.signal,
      timeoutMs: 120_000,
      ...(this.#parts.keepsObjects ? {} : { newObjects }),
    };
  }
}

/** The output of a call. Throws `unavailable` for one that failed. */
export function textOf(result: GitResult, message: string): string {
  if (result.status === "ok") return result.stdout.toString();
  throw gitFailed(result, message);
}

function gitFailed(result: GitResult, message: string): KitError {
  if (result.status === "missing")
    return new KitError({
      code: "unavailable",
      message: "Git is not installed, and a verdict is about a change that Git knows.",
    });
  const said = result.status === "failed" ? (result.stderr.trim().split("\n").at(-1) ?? "") : "";
  const isPlain = said === "" || said.includes("not a git repository");
  return new KitError({
    code: "unavailable",
    message: isPlain ? message : `${message} Git says: ${said.slice(0, 300)}`,
  });
}
