import { KitError } from "../../../base/kit-error.ts";
import { type GitResult, runGit } from "./run-git.ts";

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
 * The files below `root` that differ between where the present work left `since` (their merge base)
 * and the working tree as it is now: committed, staged, unstaged and untracked changes.
 *
 * Throws `invalid_request` for a revision that Git does not know, and `unavailable` where there is
 * no repository or Git does not answer.
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
  const commit = await resolveRevision(options);
  const mergeBase = await runGit(["merge-base", commit, "HEAD"], { cwd, signal });
  // Unrelated histories, and clones too shallow to tell, have no merge base.
  const base = mergeBase.status === "ok" ? mergeBase.stdout.trim() : commit;
  const settings = await withoutFilters(options);
  const diff = await runGit(
    [
      "diff",
      "-z",
      "--name-status",
      "--find-renames",
      "--relative",
      "--no-ext-diff",
      "--no-textconv",
      "--no-color",
      "--ignore-submodules=dirty",
      "--end-of-options",
      base,
      "--",
      ".",
    ],
    { cwd, signal, settings },
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

async function resolveRevision({ root: cwd, since, signal }: ChangedFilesOptions): Promise<string> {
  const unknown = (reason: string): KitError<"invalid_request"> =>
    new KitError({
      code: "invalid_request",
      message: reason,
      hint: "Name a branch, a tag or a commit of this repository, such as main or HEAD~3.",
    });
  // biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what it looks for
  if (since === "" || since.startsWith("-") || since.length > 256 || /[\u0000-\u001f\u007f]/.test(since)) {
    throw unknown("A revision is a name of 1 to 256 characters that does not start with a dash.");
  }
  const result = await runGit(["rev-parse", "--verify", "--quiet", "--end-of-options", `${since}^{commit}`], {
    cwd,
    signal,
  });
  if (result.status === "ok") {
    // `--end-of-options` is echoed by some versions of Git.
    const commit = result.stdout.trim().split("\n").at(-1);
    if (commit !== undefined && /^[0-9a-f]{40,64}$/.test(commit)) return commit;
  }
  if (result.status === "failed" && !result.stderr.includes("not a git repository")) {
    throw unknown(`Git knows no revision "${since}" here.`);
  }
  outputOf(result);
  throw unknown(`Git knows no revision "${since}" here.`);
}

/**
 * Settings that turn off every clean filter of the repository: comparing the working tree would
 * otherwise run the commands that the repository's configuration names.
 */
async function withoutFilters({
  root: cwd,
  signal,
}: ChangedFilesOptions): Promise<readonly (readonly [string, string])[]> {
  const result = await runGit(["config", "-z", "--name-only", "--get-regexp", "^filter\\."], { cwd, signal });
  if (result.status !== "ok") return [];
  return [...new Set(tokensOf(result.stdout))].map((key) => [key, key.endsWith(".required") ? "false" : ""]);
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
  if (result.status === "ok") return result.stdout;
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
