import { createHash } from "node:crypto";
import { readFile } from "node:fs/promises";
import { resolve } from "node:path";
import { runGit } from "./run-git.ts";

/** The state of Git for a folder. A folder outside of any repository is a normal answer, not an error. */
export type GitState =
  | {
      readonly kind: "repository";
      /** Absent before the first commit. */
      readonly head?: string;
      /** Commits whose parents a shallow clone left out; their dates say nothing about their files. */
      readonly boundary: ReadonlySet<string>;
      /** Names what dates were read from; cached dates with another key need an update. */
      readonly historyKey: string;
    }
  | { readonly kind: "none"; readonly reason: string };

/** Asks Git about a folder, which may be any folder of a work tree. One process, about 5 ms. */
export async function readGitState(root: string, signal?: AbortSignal): Promise<GitState> {
  const question = ["--is-inside-work-tree", "--is-shallow-repository", "--git-path", "shallow"];
  const result = await runGit(["rev-parse", ...question, "HEAD^{commit}"], { cwd: root, signal });
  if (result.status === "missing") return { kind: "none", reason: "Git is not installed." };
  if (result.status === "timeout" || result.status === "too-large") {
    return { kind: "none", reason: "Git did not answer in time." };
  }
  // Before the first commit HEAD cannot be resolved: Git answers the other questions and then fails.
  const [inside, shallow, shallowFile, commit] = result.stdout.split("\n");
  if (inside !== "true" || shallowFile === undefined) {
    const foreign = result.status === "failed" && result.stderr.includes("safe.directory");
    return {
      kind: "none",
      reason: foreign
        ? "Git refuses the repository because it belongs to another user (see git config safe.directory)."
        : "Not a Git repository.",
    };
  }
  const boundary = shallow === "true" ? await readBoundary(resolve(root, shallowFile)) : new Set<string>();
  if (result.status === "failed" || commit === undefined || !/^[0-9a-f]{40,64}$/.test(commit)) {
    return { kind: "repository", boundary, historyKey: "" };
  }
  return { kind: "repository", head: commit, boundary, historyKey: historyKeyOf(commit, boundary) };
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
