import { createHash } from "node:crypto";
import { statSync } from "node:fs";
import { join } from "node:path";
import { findGitFolder } from "../../../files/git-folder.ts";
import { ignoreFileName, isSkippedName } from "../../../files/ignore-scope.ts";
import { runGit } from "../../../processes/git.ts";
import { parseStored, readMeta } from "../../store/open-index.ts";
import { stampOfSource, type Tree } from "../tree.ts";
import type { IndexReader } from "./file-dates.ts";

/** The files that Git tracks although an ignore rule matches them: Git ignores only untracked files. */
export interface TrackedFiles {
  /** Identifies the index of Git and the ignore rules: a changed value means that Git must be asked. */
  readonly key: string;
  /** Project-relative. */
  readonly paths: readonly string[];
}

interface TrackedQuestion {
  /** Taken before Git was asked. */
  readonly indexStamp: string;
  readonly known: TrackedFiles | undefined;
  readonly ask: () => Promise<readonly string[] | undefined>;
}

/** Asks Git at once if its index has changed, because Git can answer while a pass runs. */
export function askAboutTracked(
  session: IndexReader,
  { root, signal }: { readonly root: string; readonly signal: AbortSignal },
): TrackedQuestion {
  const indexStamp = gitIndexStamp(root);
  const stored = session.read((database) => readMeta(database, "tracked"));
  const known = stored === undefined ? undefined : parseStored<TrackedFiles>(stored);
  if (known?.key.startsWith(`${indexStamp} `)) {
    return { indexStamp, known, ask: () => readTrackedFiles(root, signal) };
  }
  const answer = readTrackedFiles(root, signal);
  answer.catch(() => undefined);
  return { indexStamp, known, ask: () => answer };
}

interface FoundRules {
  /** A digest of the ignore rules from outside of the project. */
  readonly outerRules: string;
  readonly tree: Tree;
}

export interface NewlyTracked extends TrackedFiles {
  /** Whether the paths differ from the known ones. */
  readonly areOther: boolean;
  /** Whether readers can see a difference: also where only the rules are other ones. */
  readonly isVisible: boolean;
}

/** The answer of Git, as of the ignore rules that a pass found; undefined if nothing has changed or Git cannot answer. */
export async function newlyTracked(
  { indexStamp, known, ask }: TrackedQuestion,
  rules: FoundRules,
): Promise<NewlyTracked | undefined> {
  const digest = digestRules(rules);
  const key = `${indexStamp} ${digest}`;
  if (known?.key === key) return undefined;
  const paths = await ask();
  if (paths === undefined) return undefined;
  const areOther = (known?.paths ?? []).join("\0") !== paths.join("\0");
  return { key, paths, areOther, isVisible: areOther || !known?.key.endsWith(digest) };
}

/** How long a refresh waits for Git. */
const maxWaitMs = 5_000;

/** Starts one process; undefined if Git cannot answer. */
async function readTrackedFiles(root: string, signal: AbortSignal): Promise<readonly string[] | undefined> {
  if (findGitFolder(root) === undefined) return [];
  const options = ["-z", "--cached", "--ignored", "--exclude-standard"];
  const result = await runGit(["ls-files", ...options, "--", "."], {
    cwd: root,
    signal,
    timeoutMs: maxWaitMs,
  });
  if (result.status !== "ok") return undefined;
  const paths = result.stdout.toString().split("\0");
  return paths.filter((path) => path !== "" && !path.split("/").some(isSkippedName));
}

/** The stamp of Git's index; changes with every `git add`. */
function gitIndexStamp(root: string): string {
  const git = findGitFolder(root);
  if (git === undefined) return "none";
  const stats = statSync(join(git.own, "index"), { throwIfNoEntry: false });
  return stats === undefined ? "-" : `${stats.size}:${stats.mtimeMs}`;
}

/** Identifies the ignore rules of a project, and those from outside of it. */
export function digestRules({ outerRules, tree }: FoundRules): string {
  const rules = createHash("sha256").update(outerRules);
  for (const folder of tree.values()) {
    const stamp = folder.sources.includes(ignoreFileName) ? stampOfSource(folder, ignoreFileName) : undefined;
    if (stamp !== undefined) rules.update(`${folder.path}:${stamp};`);
  }
  return rules.digest("base64url");
}
