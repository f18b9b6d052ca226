import { createHash } from "node:crypto";
import { readFile } from "node:fs/promises";
import { resolve } from "node:path";
import { KitError } from "../../../base/kit-error.ts";
import { type GitResult, runGit } from "../../../processes/git.ts";
import { readObjects } from "./read-objects.ts";

/** The state of Git for a folder. A folder outside of any repository is a normal answer, not an error. */
export type GitState =
  | {
      readonly kind: "repository";
      /** Absent before the first commit. */
      readonly head?: string;
      /** Commits whose parents a shallow clone leaves out; such a commit lists files that it did not change. */
      readonly boundary: ReadonlySet<string>;
      /** Names what dates were read from; cached dates with another key need an update. */
      readonly historyKey: string;
    }
  | { readonly kind: "none"; readonly reason: string };

/** Asks Git about any folder of a work tree. Starts one process, about 5 ms. */
export async function readGitState(root: string, signal?: AbortSignal): Promise<GitState> {
  const question = ["--is-inside-work-tree", "--is-shallow-repository", "--git-path", "shallow"];
  const result = await runGit(["rev-parse", ...question, "HEAD^{commit}"], { cwd: root, signal });
  if (result.status === "missing") return { kind: "none", reason: "Git is not installed." };
  if (result.status === "timeout" || result.status === "too-large") {
    return { kind: "none", reason: "Git did not answer in time." };
  }
  // Before the first commit HEAD cannot be resolved: Git answers the other questions and then fails.
  const [inside, shallow, shallowFile, commit] = result.stdout.toString().split("\n");
  if (inside !== "true" || shallowFile === undefined) {
    const message = result.status === "failed" ? result.stderr : "";
    return {
      kind: "none",
      reason: message.includes("safe.directory")
        ? "Git refuses the repository because it belongs to another user (see git config safe.directory)."
        : message.startsWith("The .git ")
          ? message
          : "Not a Git repository.",
    };
  }
  const boundary = shallow === "true" ? await readBoundary(resolve(root, shallowFile)) : new Set<string>();
  if (result.status === "failed" || commit === undefined || !/^[0-9a-f]{40,64}$/.test(commit)) {
    return { kind: "repository", boundary, historyKey: "" };
  }
  return { kind: "repository", head: commit, boundary, historyKey: historyKeyOf(commit, boundary) };
}

/** The commit of a folder, and its tree if no file of the folder differs from it. */
export interface Revision {
  readonly commit: string;
  readonly tree?: string;
  readonly dirty?: true;
}

/**
 * Reads the commit that a folder is at, or the tree of another commit. `undefined` outside of a repository, before the first commit,
 * without Git, and for a commit that the repository does not have.
 */
export async function readRevision(
  root: string,
  { signal, commit: other }: { readonly signal?: AbortSignal | undefined; readonly commit?: string } = {},
): Promise<Revision | undefined> {
  const name = other ?? "HEAD";
  const answer = await runGit(["rev-parse", `${name}^{commit}`, `${name}^{tree}`], { cwd: root, signal });
  if (answer.status !== "ok") return undefined;
  const [commit = "", tree = ""] = answer.stdout.toString().split("\n");
  if (other !== undefined) return { commit, tree };
  return (await readDirty(root, signal)) === false ? { commit, tree } : { commit, dirty: true };
}

/** Whether files below a folder differ from the last commit, untracked ones included; undefined if Git cannot tell. */
export async function readDirty(root: string, signal?: AbortSignal): Promise<boolean | undefined> {
  const options = { cwd: root, signal };
  const diff = await runGit(["diff", "--quiet", "HEAD", "--", "."], options);
  if (diff.status !== "ok") return diff.status === "failed" && diff.exitCode === 1 ? true : undefined;
  const others = ["--others", "--exclude-standard", "--directory", "--no-empty-directory", "--", "."];
  const untracked = await runGit(["ls-files", "-z", ...others], options);
  return untracked.status === "ok" ? untracked.stdout.length > 0 : undefined;
}

async function readBoundary(file: string): Promise<ReadonlySet<string>> {
  const text = await readFile(file, "utf8").catch(() => "");
  return new Set(text.split("\n").filter((line) => line !== ""));
}

// A shallow clone that is deepened has the same head and another history.
function historyKeyOf(head: string, boundary: ReadonlySet<string>): string {
  if (boundary.size === 0) return head;
  const digest = createHash("sha256")
    .update([...boundary].sort().join("\n"))
    .digest("hex");
  return `${head}:${digest.slice(0, 16)}`;
}

export interface ChangedFile {
  /** POSIX, relative to the root that was asked about. */
  readonly path: string;
  readonly change: "added" | "modified" | "deleted" | "renamed" | "untracked";
  /** The former path of a renamed file. */
  readonly from?: string;
}

export interface ChangedFilesOptions {
  readonly root: string;
  /** A branch, tag or commit, as a person types it. */
  readonly since: string;
  readonly signal?: AbortSignal;
}

/**
 * The files below `root` that differ between the merge base with `since` and the present working tree: committed, staged,
 * unstaged and untracked changes.
 *
 * Throws `invalid_request` for a revision that Git does not know, and `unavailable` if there is no repository or Git does not
 * answer.
 *
 * @example
 * ```ts
 * import { readChangedFiles } from "kit/project";
 *
 * for (const { path, change } of await readChangedFiles({ root: ".", since: "main" })) console.log(change, path);
 * ```
 */
export async function readChangedFiles(options: ChangedFilesOptions): Promise<readonly ChangedFile[]> {
  const { root: cwd, signal } = options;
  const base = await findBase(options);
  const diff = await runGit(
    [
      "diff",
      "-z",
      "--name-status",
      "--find-renames",
      "--relative",
      "--no-color",
      "--end-of-options",
      base,
      "--",
      ".",
    ],
    { cwd, signal },
  );
  const untracked = await runGit(["ls-files", "-z", "--others", "--exclude-standard", "--", "."], {
    cwd,
    signal,
  });
  return [
    ...parseNameStatus(outputOf(diff)),
    ...tokensOf(outputOf(untracked)).map((path) => ({ path, change: "untracked" as const })),
  ].sort((a, b) => (a.path < b.path ? -1 : a.path > b.path ? 1 : 0));
}

/**
 * The paths to ask an impact analysis about: a deleted or renamed file counts under its old name.
 *
 * @example
 * ```ts
 * import { openProject } from "kit";
 * import { readChangedFiles, toChangedPaths } from "kit/project";
 *
 * const project = await openProject({ root: "." });
 * const files = toChangedPaths(await readChangedFiles({ root: ".", since: "main" }));
 * console.log(project.specs.impact({ files }).affected);
 * await project.close();
 * ```
 */
export function toChangedPaths(changes: readonly ChangedFile[]): readonly string[] {
  const paths = changes.flatMap(({ path, from }) => (from === undefined ? [path] : [from, path]));
  return [...new Set(paths)].sort();
}

/** The merge base of HEAD with a revision. Throws like `readChangedFiles`. */
export async function findBase(options: ChangedFilesOptions): Promise<string> {
  const { root, signal } = options;
  const commit = await resolveRevision(options);
  // Unrelated histories, and clones too shallow to tell, have no merge base.
  return (await findMergeBase({ root, signal }, [commit, "HEAD"])) ?? commit;
}

/** The last commit that two have in common; undefined for unrelated ones, and where a shallow clone ends before it. */
export async function findMergeBase(
  { root, signal }: { readonly root: string; readonly signal?: AbortSignal | undefined },
  commits: readonly [string, string],
): Promise<string | undefined> {
  const result = await runGit(["merge-base", ...commits], { cwd: root, signal, timeoutMs: 120_000 });
  // No answer in time is no answer: the commits may have a base.
  return result.status === "failed" ? undefined : outputOf(result).trim();
}

/** The bytes of files as the merge base with `since` has them, by path; without those that it does not have. */
export async function readFilesSince(
  options: ChangedFilesOptions & { readonly paths: readonly string[] },
): Promise<ReadonlyMap<string, Uint8Array>> {
  return options.paths.length === 0
    ? new Map()
    : await readFilesAt({ ...options, commit: await findBase(options) });
}

/** The bytes of files as a commit has them, by path; without those that it does not have. */
export async function readFilesAt({
  root: cwd,
  commit,
  paths: all,
  signal,
}: Pick<ChangedFilesOptions, "root" | "signal"> & {
  readonly commit: string;
  readonly paths: readonly string[];
}): Promise<ReadonlyMap<string, Uint8Array>> {
  // A request is a line.
  const paths = all.filter((path) => !path.includes("\n"));
  const contents = await readObjects(
    paths.map((path) => `${commit}:./${path}`),
    { cwd, signal },
  );
  return new Map(
    paths.flatMap((path, at) => (contents?.[at] === undefined ? [] : [[path, contents[at]] as const])),
  );
}

/** The commit of a branch, tag or commit as a person types it. Throws like `readChangedFiles`. */
export async function resolveRevision({ root: cwd, since, signal }: ChangedFilesOptions): Promise<string> {
  const unknown = (reason: string): KitError<"invalid_request"> =>
    new KitError({
      code: "invalid_request",
      message: reason,
      hint: "Name a branch, a tag or a commit of this repository, such as main or HEAD~3.",
    });
  // biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what it looks for
  if (since === "" || since.startsWith("-") || since.length > 256 || /[\u0000-\u001f\u007f]/.test(since)) {
    throw unknown(
      `A revision is a name of 1 to 256 characters that does not start with a dash, not ${JSON.stringify(since.slice(0, 80))}.`,
    );
  }
  const result = await runGit(["rev-parse", "--verify", "--quiet", "--end-of-options", `${since}^{commit}`], {
    cwd,
    signal,
  });
  if (result.status === "ok") {
    // `--end-of-options` is echoed by some versions of Git.
    const commit = result.stdout.toString().trim().split("\n").at(-1);
    if (commit !== undefined && /^[0-9a-f]{40,64}$/.test(commit)) return commit;
  }
  if (result.status === "failed" && !result.stderr.includes("not a git repository")) {
    throw unknown(`Git knows no revision "${since}" here.`);
  }
  outputOf(result);
  throw unknown(`Git knows no revision "${since}" here.`);
}

const changeOfLetter: Readonly<Record<string, ChangedFile["change"]>> = {
  A: "added",
  C: "added",
  D: "deleted",
  R: "renamed",
};

function parseNameStatus(output: string): readonly ChangedFile[] {
  const changes: ChangedFile[] = [];
  const tokens = tokensOf(output);
  for (let at = 0; at + 1 < tokens.length; ) {
    const letter = tokens[at]?.[0] ?? "";
    const hasFormerPath = letter === "R" || letter === "C";
    const path = tokens[at + (hasFormerPath ? 2 : 1)];
    const from = tokens[at + 1];
    at += hasFormerPath ? 3 : 2;
    if (path === undefined) break;
    const change = changeOfLetter[letter] ?? "modified";
    changes.push(letter === "R" && from !== undefined ? { path, change, from } : { path, change });
  }
  return changes;
}

function tokensOf(output: string): string[] {
  return output.split("\0").filter((token) => token !== "");
}

function outputOf(result: GitResult): string {
  if (result.status === "ok") return result.stdout.toString();
  const reasons: Record<Exclude<GitResult["status"], "ok">, string> = {
    missing: "Git is not installed, and what changed is Git's to say.",
    failed: "This is not a Git repository, or Git cannot read it.",
    timeout: "Git did not answer in time.",
    "too-large": "Git answered with more than kit reads.",
  };
  throw new KitError({
    code: "unavailable",
    message: reasons[result.status],
    hint: "Name the changed files instead of a revision.",
  });
}
