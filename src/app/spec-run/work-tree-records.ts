import { readdir, readFile, realpath, rm } from "node:fs/promises";
import { basename, dirname, join } from "node:path";

/** The record of a linked work tree in the folder `worktrees` of Git. */
export interface WorkTreeRecord {
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
export async function removeRecords(
  common: string,
  isLeft: (record: WorkTreeRecord) => boolean,
): Promise<void> {
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
export async function recordedPath(folder: string): Promise<string> {
  const parent = dirname(folder);
  return join(await realpath(parent).catch(() => parent), basename(folder));
}
