import { execFile } from "node:child_process";
import { mkdir, mkdtemp, readFile, realpath, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { promisify } from "node:util";

/** A real folder for one test; a real Git repository after `init`. */
export interface TemporaryRepository {
  /** Absolute, with links resolved. */
  readonly root: string;
  write(path: string, text: string): Promise<void>;
  /** Runs Git in the root and returns its output without the last line break. */
  git(...args: readonly string[]): Promise<string>;
  init(): Promise<void>;
  /** Commits everything at the given time (seconds since 1970) and returns the commit. */
  commit(message: string, time: number): Promise<string>;
  [Symbol.asyncDispose](): Promise<void>;
}

/**
 * The files that `git init` and `git config` write. Starting Git three times for them takes longer than most tests. The
 * settings also keep commits from starting maintenance of the repository.
 */
const config = `[core]
\trepositoryformatversion = 0
\tfilemode = true
\tbare = false
\tlogallrefupdates = true
[user]
\tname = Ann
\temail = ann@example.org
[gc]
\tauto = 0
[maintenance]
\tauto = false
`;

/** Creates a folder with these files. The caller disposes of it. */
export async function createTemporaryRepository(
  files: Readonly<Record<string, string>> = {},
): Promise<TemporaryRepository> {
  const root = await realpath(await mkdtemp(join(tmpdir(), "kit-test-")));
  const run = async (args: readonly string[], time?: number): Promise<string> => {
    const date =
      time === undefined ? {} : { GIT_AUTHOR_DATE: `@${time} +0200`, GIT_COMMITTER_DATE: `@${time} +0200` };
    const env = { PATH: process.env.PATH, HOME: root, GIT_CONFIG_NOSYSTEM: "1", ...date };
    const { stdout } = await promisify(execFile)("git", [...args], { cwd: root, env });
    return stdout.replace(/\n$/, "");
  };
  const repository: TemporaryRepository = {
    root,
    async write(path, text) {
      await mkdir(dirname(join(root, path)), { recursive: true });
      await writeFile(join(root, path), text);
    },
    git: (...args) => run(args),
    async init() {
      for (const folder of ["objects", "refs", "info"])
        await mkdir(join(root, ".git", folder), { recursive: true });
      await writeFile(join(root, ".git/config"), config);
      await writeFile(join(root, ".git/HEAD"), "ref: refs/heads/main\n");
    },
    async commit(message, time) {
      await run(["add", "--all"]);
      await run(["commit", "--quiet", "--allow-empty", "--message", message], time);
      const head = await readFile(join(root, ".git/HEAD"), "utf8");
      const branch = head.startsWith("ref: ") ? head.slice(5).trim() : undefined;
      return (branch === undefined ? head : await readFile(join(root, ".git", branch), "utf8")).trim();
    },
    async [Symbol.asyncDispose]() {
      await rm(root, { recursive: true, force: true, maxRetries: 10 });
    },
  };
  for (const [path, text] of Object.entries(files)) await repository.write(path, text);
  return repository;
}
