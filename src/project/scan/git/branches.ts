import { KitError } from "../../../base/kit-error.ts";
import { type GitArguments, runGit } from "../../../processes/git.ts";
import { resolveRevision } from "./git-state.ts";

/** A folder of a repository. */
export interface InRepository {
  readonly root: string;
  readonly signal?: AbortSignal | undefined;
}

/** A branch as people name it, and its last commit. */
export interface Branch {
  readonly name: string;
  readonly commit: string;
}

const mostBranches = 200;

async function ask({ root, signal }: InRepository, args: GitArguments): Promise<string | undefined> {
  const result = await runGit(args, { cwd: root, signal });
  return result.status === "ok" ? result.stdout.toString() : undefined;
}

/** The branch that others begin with: the main one of the remote, else `main` or `master`. */
export async function findMainBranch(repository: InRepository): Promise<Branch | undefined> {
  for (const name of ["origin/HEAD", "main", "master"]) {
    const ref = name.startsWith("origin/") ? `refs/remotes/${name}` : `refs/heads/${name}`;
    const answer = await ask(repository, ["rev-parse", "--verify", "--quiet", `${ref}^{commit}`]);
    if (answer !== undefined) return { name, commit: answer.trim() };
  }
  return undefined;
}

/**
 * The branches of this repository and of its remotes whose name matches a glob, such as `origin/*`. Throws `invalid_request` if none
 * does, or more than 200 do.
 */
export async function findBranches(
  repository: InRepository,
  globs: readonly string[],
): Promise<readonly Branch[]> {
  const branches = new Map<string, Branch>();
  for (const glob of globs) {
    // biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what it looks for
    const isName = glob !== "" && glob.length <= 256 && !/^-|[\u0000-\u001f\u007f]/.test(glob);
    const refs = isName ? await refsOf(repository, glob) : [];
    if (refs.length === 0)
      throw noBranches(
        `No branch matches ${JSON.stringify(glob)}.`,
        "'git branch --all' lists them: origin/*, feature/*.",
      );
    if (refs.length > mostBranches)
      throw noBranches(
        `${JSON.stringify(glob)} matches ${refs.length} branches; at most ${mostBranches} can be compared.`,
        "Name fewer: origin/feature/*.",
      );
    const commits = await ask(repository, ["rev-parse", ...refs.map((ref) => `${ref}^{commit}`)]);
    for (const [at, commit] of (commits ?? "").split("\n").entries()) {
      const name = refs[at]?.replace(/^refs\/(?:heads|remotes)\//, "");
      if (name !== undefined && commit !== "") branches.set(name, { name, commit });
    }
  }
  return [...branches.values()];
}

/** Branches and those of remotes, by their whole names. */
async function refsOf(repository: InRepository, glob: string): Promise<readonly string[]> {
  const names = ["refs/heads/", "refs/remotes/"].map((folder) => `${folder}${glob}`);
  if (/[*?[]/.test(glob)) {
    const globs = names.map((name) => `--glob=${name}`);
    const answer = await ask(repository, ["rev-parse", "--symbolic-full-name", ...globs]);
    return (answer ?? "").split("\n").filter((ref) => ref !== "" && !ref.endsWith("/HEAD"));
  }
  // Git takes a glob without a wildcard for a folder of branches.
  const found: string[] = [];
  for (const name of names)
    if ((await ask(repository, ["rev-parse", "--verify", "--quiet", name])) !== undefined) found.push(name);
  return found;
}

function noBranches(message: string, hint: string): KitError<"invalid_request"> {
  return new KitError({
    code: "invalid_request",
    message,
    hint,
    meta: { issues: [{ path: "branches", message }] },
  });
}

/** A branch, tag or commit as a person types it. Throws `invalid_request` for one that Git does not know. */
export async function findBranch({ root, signal }: InRepository, name: string): Promise<Branch> {
  return { name, commit: await resolveRevision({ root, since: name, ...(signal && { signal }) }) };
}

/** The files that differ between two commits, by path: whether the second one has them. */
export async function readDifference(
  repository: InRepository,
  [from, to]: readonly [string, string],
): Promise<ReadonlyMap<string, boolean>> {
  if (from === to) return new Map();
  const options = ["-r", "-z", "--name-status", "--no-renames", "--relative"];
  const answer = await ask(repository, ["diff-tree", ...options, from, to]);
  if (answer === undefined)
    throw new KitError({
      code: "unavailable",
      message: "Git cannot compare two commits of this repository.",
      hint: "'git fsck' tells which objects it lacks.",
    });
  const tokens = answer.split("\0");
  const files = new Map<string, boolean>();
  for (let at = 0; at + 1 < tokens.length; at += 2) files.set(tokens[at + 1] ?? "", tokens[at] !== "D");
  return files;
}
