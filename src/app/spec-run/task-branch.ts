import { readdir, readFile, realpath, rm } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { KitError } from "../../base/kit-error.ts";
import { type GitArguments, type RunGitOptions, runGit } from "../../processes/git.ts";
import { Trees, textOf } from "../verify/trees.ts";

/** The name and address of a commit's author. */
export interface Identity {
  readonly name: string;
  readonly email: string;
}

/** The parts of the commit of a closed task. */
export interface TaskCommit {
  readonly tree: string;
  readonly parent: string;
  readonly message: string;
  readonly identity: Identity;
  /** In ms since 1970. */
  readonly at: number;
}

/** How often a work tree is linked, and the pause between, in ms: a Git that lives needs a moment for a record. */
const maxLinks = 30;
const linkPauseMs = 100;

const kit: Identity = { name: "kit", email: "kit@localhost" };

/**
 * The branch that gets the commits of a feature's tasks, in the repository of a project. kit never checks it out: the user's work tree
 * and index stay as they are.
 */
export class TaskBranch {
  /** Without `refs/heads/`. */
  readonly name: string;
  /** The user's checkout, and the path from its top to the project. */
  readonly top: string;
  readonly prefix: string;
  readonly #signal: AbortSignal | undefined;

  private constructor(name: string, { top, prefix }: Pick<Trees, "top" | "prefix">, signal?: AbortSignal) {
    this.name = name;
    this.top = top;
    this.prefix = prefix;
    this.#signal = signal;
  }

  /** Throws `unavailable` outside of a work tree of Git. */
  static async open(root: string, feature: string, signal?: AbortSignal): Promise<TaskBranch> {
    await using trees = await Trees.open(root, { signal });
    return new TaskBranch(`kit/${toRefName(feature)}`, trees, signal);
  }

  /** The commit that `begin` would return; checks without changing anything. */
  async peek(): Promise<string> {
    return (await this.#next()).commit;
  }

  /**
   * The commit from which the next task begins. Creates the branch at HEAD, and moves it forward if HEAD has what it had. Throws
   * `conflict` if both have commits of their own, and `unavailable` without a commit.
   */
  async begin(): Promise<string> {
    const { commit, from } = await this.#next();
    // An empty old value says that the branch must not exist.
    if (from !== undefined) await this.#text(["update-ref", `refs/heads/${this.name}`, commit, from]);
    return commit;
  }

  /** `from` is what the branch has now, if it has to move. */
  async #next(): Promise<{ readonly commit: string; readonly from?: string }> {
    const head = await this.#commit("HEAD");
    if (head === undefined) {
      throw new KitError({
        code: "unavailable",
        message: "The repository has no commit that a task can begin with.",
        hint: "Commit the specs and the code first: kit works in a checkout of its own.",
      });
    }
    const tip = await this.tip();
    if (tip === undefined) return { commit: head, from: "" };
    if (tip === head || (await this.contains(tip, head))) return { commit: tip };
    if (await this.contains(head, tip)) return { commit: head, from: tip };
    throw new KitError({
      code: "conflict",
      message: `The branch ${this.name} and your HEAD have both got commits of their own.`,
      hint: `Merge the branch (git merge ${this.name}), or remove it (git branch -D ${this.name}), and begin again.`,
    });
  }

  /** The last commit of the branch, if there is one. */
  async tip(): Promise<string | undefined> {
    return await this.#commit(`refs/heads/${this.name}`);
  }

  /** Whether a commit has another one among its ancestors. */
  async contains(commit: string, ancestor: string): Promise<boolean> {
    const result = await this.#run(["merge-base", "--is-ancestor", ancestor, commit]);
    return result.status === "ok";
  }

  /**
   * Commits a tree on top of its parent. The same again gives the same commit. Returns undefined if the branch has another tip
   * meanwhile, unless the tip contains this very commit.
   */
  async commit({ tree, parent, message, identity, at }: TaskCommit): Promise<string | undefined> {
    const made = await this.#text(["commit-tree", tree, "-p", parent, "-F", "-"], {
      input: message,
      committer: { ...identity, date: at },
    });
    const tip = await this.tip();
    if (tip !== undefined && (tip === made || (await this.contains(tip, made)))) return made;
    const moved = await this.#run(["update-ref", `refs/heads/${this.name}`, made, parent]);
    if (moved.status === "ok") return made;
    // Another process may have moved it to this very commit.
    return (await this.tip()) === made ? made : undefined;
  }

  /** The user's own name, as Git knows it; kit's name otherwise. */
  async identity(): Promise<Identity> {
    const [name, email] = await Promise.all(
      ["user.name", "user.email"].map(async (key) => {
        const result = await this.#run(["config", "--get", key]);
        return result.status === "ok" ? result.stdout.toString().trim() : "";
      }),
    );
    return name === undefined || name === "" || email === undefined || email === "" ? kit : { name, email };
  }

  /** The difference between two trees as a person reads it; cut to a number of characters. */
  async diff(base: string, tree: string, most: number): Promise<string> {
    const text = await this.#text(["diff-tree", "-p", "-r", "--no-color", base, tree]);
    return text.length <= most ? text : `${text.slice(0, most)}\n… ${text.length - most} more characters.\n`;
  }

  /** Links a new work tree at a commit; the folder gets no files yet. */
  async link(folder: string, commit: string): Promise<void> {
    await this.unlink(folder);
    // The second `--force` is for a record that Git takes for locked.
    const add = [
      "worktree",
      "add",
      "--no-checkout",
      "--detach",
      "--force",
      "--force",
      folder,
      commit,
    ] as const;
    for (let attempt = 1; ; attempt += 1) {
      const result = await this.#run(add);
      // Git reads the records of all work trees. Another Git is making one, or was killed in the middle.
      const isHalfMade = result.status === "failed" && /worktrees\/.*\/commondir/.test(result.stderr);
      if (!isHalfMade || attempt === maxLinks) {
        textOf(result, "Git could not link a work tree.");
        return;
      }
      if (attempt === maxLinks - 1) {
        const parent = dirname(await recordedPath(folder));
        await removeRecords(
          await this.#commonFolder(),
          (record) => !record.isWhole && record.folder !== undefined && dirname(record.folder) === parent,
        );
      } else await delay(linkPauseMs, undefined, { signal: this.#signal });
    }
  }

  /** Removes a work tree with all that is in it, also one that a killed Git has left half-made. Does nothing without one. */
  async unlink(folder: string): Promise<void> {
    const removed = await this.#run(["worktree", "remove", "--force", "--force", folder]);
    if (removed.status === "ok") return;
    await rm(folder, { recursive: true, force: true });
    const path = await recordedPath(folder);
    await removeRecords(
      await this.#commonFolder(),
      (record) => (record.folder ?? (record.isWhole ? "" : join(dirname(path), record.name))) === path,
    );
  }

  async #commonFolder(): Promise<string> {
    return await this.#text(["rev-parse", "--path-format=absolute", "--git-common-dir"]);
  }

  /** The path of the project in a work tree. */
  projectIn(folder: string): string {
    return join(folder, this.prefix);
  }

  async #commit(name: string): Promise<string | undefined> {
    const result = await this.#run(["rev-parse", "--verify", "--quiet", `${name}^{commit}`]);
    return result.status === "ok" ? result.stdout.toString().trim() : undefined;
  }

  async #text(command: GitArguments, options: Partial<RunGitOptions> = {}): Promise<string> {
    return textOf(await this.#run(command, options), `Git could not do its part (${command[0]}).`).trim();
  }

  async #run(command: GitArguments, options: Partial<RunGitOptions> = {}): ReturnType<typeof runGit> {
    return await runGit(command, { cwd: this.top, signal: this.#signal, timeoutMs: 120_000, ...options });
  }
}

/** The label of a feature as part of a branch's name, which allows fewer characters. */
export function toRefName(label: string): string {
  const segments = label
    .split("/")
    .map((segment) =>
      segment
        .replace(/[^\p{L}\p{N}_-]+/gu, "-")
        .replace(/^-+|-+$/g, "")
        .slice(0, 80),
    )
    .filter((segment) => segment !== "");
  return segments.length === 0 ? "feature" : segments.join("/");
}

/** The record of a linked work tree in the folder `worktrees` of Git. */
interface WorkTreeRecord {
  readonly name: string;
  /** The work tree; undefined if Git has not written it. */
  readonly folder: string | undefined;
  /** Whether Git has written all that it reads of each work tree. */
  readonly isWhole: boolean;
}

/**
 * Removes records of work trees. Git cannot remove those that a killed `git worktree add` has left: it takes them for locked, and each
 * `git worktree add` fails at one without the text of `commondir`.
 */
async function removeRecords(common: string, isLeft: (record: WorkTreeRecord) => boolean): Promise<void> {
  const records = join(common, "worktrees");
  for (const name of await readdir(records).catch(() => [])) {
    const [gitdir, ...rest] = await Promise.all(
      ["gitdir", "commondir", "HEAD"].map((file) =>
        readFile(join(records, name, file), "utf8").then(
          (text) => text.trim(),
          () => "",
        ),
      ),
    );
    const folder = gitdir === undefined || gitdir === "" ? undefined : dirname(gitdir);
    if (isLeft({ name, folder, isWhole: !rest.includes("") }))
      await rm(join(records, name), { recursive: true, force: true });
  }
}

/** The path of a work tree as Git writes it into its record; the work tree need not exist. */
async function recordedPath(folder: string): Promise<string> {
  const parent = dirname(folder);
  return join(await realpath(parent).catch(() => parent), basename(folder));
}
