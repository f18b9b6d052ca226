import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { runGit } from "../../processes/git.ts";
import { type Listing, Trees } from "../verify/trees.ts";
import type { TaskBranch } from "./task-branch.ts";

export interface MergedWork {
  /** The tree that has what was judged and what was committed since. */
  readonly tree: string;
  /** Files that both changed in the same lines, from the top of the repository; the tree has them as committed. */
  readonly conflicts: readonly string[];
}

/**
 * Merges the change from `base` to `tree` into the commit `head`: whole files, and texts line by line. The drivers that a repository
 * names for merges do not run.
 */
export async function mergeWork(
  branch: TaskBranch,
  { base, tree, head }: { readonly base: string; readonly tree: string; readonly head: string },
): Promise<MergedWork> {
  await using trees = await Trees.open(branch.top, { keepsObjects: true });
  const [before, ours, theirs] = [await trees.list(base), await trees.list(tree), await trees.list(head)];
  const entries = new Map<string, string | undefined>();
  const conflicts: string[] = [];
  for (const path of new Set([...before.keys(), ...ours.keys()])) {
    const [old, own, other] = [before.get(path), ours.get(path), theirs.get(path)];
    if (own === old || own === other) continue;
    if (other === old) entries.set(path, own);
    else {
      const merged = await mergeTexts(trees, path, { before, ours, theirs });
      if (merged === undefined) conflicts.push(path);
      else entries.set(path, merged);
    }
  }
  return { tree: await trees.replace(head, entries), conflicts };
}

/** The entry of the merged text; undefined if the changes touch the same lines, or a side has no text. */
async function mergeTexts(
  trees: Trees,
  path: string,
  { before, ours, theirs }: Readonly<Record<"before" | "ours" | "theirs", Listing>>,
): Promise<string | undefined> {
  const texts: string[] = [];
  for (const side of [ours, before, theirs]) {
    const text = (await trees.texts(side, [path])).get(path);
    // A text in another encoding, or a binary file, would lose bytes.
    if (text === undefined || (await trees.hash(text)) !== side.get(path)?.split(" ")[1]) return undefined;
    texts.push(text);
  }
  const folder = await mkdtemp(join(tmpdir(), "kit-merge-"));
  try {
    const files = ["ours", "base", "theirs"].map((name) => join(folder, name));
    for (const [index, file] of files.entries()) await writeFile(file, texts[index] ?? "");
    const result = await runGit(["merge-file", "-p", "-q", ...files], { cwd: folder });
    if (result.status !== "ok") return undefined;
    const mode = ours.get(path)?.split(" ")[0] ?? "100644";
    return `${mode} ${await trees.hash(result.stdout.toString())}`;
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}
