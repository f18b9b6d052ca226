import { headKeyOf } from "../../../files/git-folder.ts";
import { type GitArguments, type GitResult, runGit } from "../../../processes/git.ts";
import { toAuthorName } from "../../../specs/model/block-title.ts";
import type { Connection } from "../../../sqlite/statements.ts";
import { type DatesUpdate, type FileDates, type FileDatesUpdate, readDates } from "../../store/date-rows.ts";
import { readMeta } from "../../store/open-index.ts";
import { type GitState, readGitState } from "./git-state.ts";

export interface ReadFileDatesOptions {
  readonly root: string;
  readonly state: GitState;
  /** The result of the last update; only commits after it are read, unless history was rewritten. */
  readonly previous?: { readonly historyKey: string; lookup(path: string): FileDates | undefined };
  readonly signal?: AbortSignal;
  /** For the whole history; default 120,000. */
  readonly timeoutMs?: number;
}

/**
 * Reads the first and last commit date, and the first author, of every file below `root` in one pass of `git log`.
 *
 * Returns undefined without a repository or a commit, and if Git failed or took too long; answers then have no dates. Follows
 * renames. A change on a side branch under the old name of a renamed file counts from the merge on.
 */
export async function readFileDates(options: ReadFileDatesOptions): Promise<FileDatesUpdate | undefined> {
  const { state, previous } = options;
  if (state.kind === "none" || state.head === undefined) return undefined;
  if (previous?.historyKey === state.historyKey) {
    return { historyKey: state.historyKey, isComplete: false, dates: new Map(), removed: [] };
  }
  const base = previous && (await continuation(options, state));
  const history = createHistory(state.boundary);
  const complete = await readLog(
    options,
    base === undefined ? state.head : `${base}..${state.head}`,
    history,
  );
  if (!complete) return undefined;
  const lookup = base === undefined ? undefined : previous?.lookup;
  return { historyKey: state.historyKey, isComplete: base === undefined, ...history.finish(lookup) };
}

/** The cached head, when the new one descends from it, the same commits are missing and the mailmap is unchanged. */
async function continuation(
  { root, previous, signal }: ReadFileDatesOptions,
  state: Extract<GitState, { kind: "repository" }>,
): Promise<string | undefined> {
  const [head, shallowKey] = previous?.historyKey.split(":") ?? [];
  if (!head || state.head === undefined || shallowKey !== state.historyKey.split(":")[1]) return undefined;
  const ask = (...args: GitArguments): Promise<GitResult> => runGit(args, { cwd: root, signal });
  const [ancestor, changed] = await Promise.all([
    ask("merge-base", "--is-ancestor", head, state.head),
    // Only the top folder, because `.mailmap` there decides the names of authors.
    ask("diff-tree", "-z", "--name-only", "--no-relative", head, state.head),
  ]);
  if (ancestor.status !== "ok" || changed.status !== "ok") return undefined;
  return changed.stdout.toString().split("\0").includes(".mailmap") ? undefined : head;
}

async function readLog(options: ReadFileDatesOptions, range: string, history: History): Promise<boolean> {
  const parser = createLogParser(history.add);
  const result = await runGit(
    [
      "log",
      "-z",
      "--format=>%H %ct %aN",
      "--encoding=UTF-8",
      "--name-status",
      "--diff-merges=combined",
      "--find-renames",
      "--root",
      "--relative",
      "--no-notes",
      "--no-color",
      "--ignore-submodules=all",
      "--end-of-options",
      range,
      "--",
      ".",
    ],
    {
      cwd: options.root,
      signal: options.signal,
      timeoutMs: options.timeoutMs ?? 120_000,
      maxBytes: Number.POSITIVE_INFINITY,
      onOutput: parser.push,
    },
  );
  parser.end();
  return result.status === "ok";
}

interface History {
  add(commit: LoggedCommit): void;
  finish(lookup?: (path: string) => FileDates | undefined): Pick<FileDatesUpdate, "dates" | "removed">;
}

interface Draft {
  first: number | undefined;
  last: number;
  commit: string;
  author: string;
  /** The name of the file in commits older than those seen; undefined if it has no name there. */
  oldName: string | undefined;
}

/**
 * Collects commits, newest first, into one record per file under the file's newest name.
 *
 * A deletion does not count as a change: a side branch can delete a file that the merge keeps, and a later commit can restore it.
 */
function createHistory(boundary: ReadonlySet<string>): History {
  const drafts = new Map<string, Draft>();
  // From a name in older commits to the newest name of the file; null if the file of that name was replaced by a renamed file.
  const newestName = new Map<string, string | null>();
  // A repository has few authors and many files.
  const names = new Map<string, string | undefined>();
  const renamedAway = new Set<string>();

  const touch = (path: string, commit: LoggedCommit): string | undefined => {
    const newest = newestName.get(path);
    if (newest === null) return undefined;
    const draft = drafts.get(newest ?? path);
    if (newest === undefined || draft === undefined) {
      newestName.set(path, path);
      const { time, hash, author } = commit;
      drafts.set(path, { first: time, last: time, commit: hash, author, oldName: path });
      return path;
    }
    // Git lists commits of the same second newest first.
    if (draft.first !== undefined && commit.time <= draft.first)
      Object.assign(draft, { first: commit.time, author: commit.author });
    if (commit.time > draft.last) Object.assign(draft, { last: commit.time, commit: commit.hash });
    return newest;
  };

  const draftOf = (name: string): Draft | undefined => drafts.get(newestName.get(name) ?? "");

  const add = (commit: LoggedCommit): void => {
    if (boundary.has(commit.hash)) {
      for (const { path } of commit.changes) {
        const draft = draftOf(path);
        if (draft !== undefined) draft.first = undefined;
      }
      return;
    }
    const renames: { readonly from: string; readonly to: string; readonly newest: string | undefined }[] = [];
    for (const { status, path, from } of commit.changes) {
      if (/^D+$/.test(status)) continue;
      const newest = touch(path, commit);
      if (from !== undefined && status === "R") renames.push({ from, to: path, newest });
    }
    // Names change after all files of the commit are seen, because one commit can swap two names.
    for (const { to } of renames) newestName.set(to, null);
    for (const { from } of renames) {
      // A newer file of the former name starts after this commit.
      const olderDraft = draftOf(from);
      if (olderDraft !== undefined) olderDraft.oldName = undefined;
      else if (!drafts.has(from)) renamedAway.add(from);
    }
    for (const { from, newest } of renames) {
      newestName.set(from, newest ?? null);
      const draft = newest === undefined ? undefined : drafts.get(newest);
      if (draft !== undefined) draft.oldName = from;
    }
  };

  const nameOf = (author: string): string | undefined => {
    if (!names.has(author)) names.set(author, toAuthorName(author));
    return names.get(author);
  };

  const finish: History["finish"] = (lookup) => {
    const dates = new Map<string, FileDates>();
    for (const [path, { last, commit, oldName, ...draft }] of drafts) {
      const oldDates = oldName === undefined ? undefined : lookup?.(oldName);
      const { first } = oldDates ?? draft;
      const author = oldDates === undefined ? nameOf(draft.author) : oldDates.author;
      dates.set(path, {
        first,
        last,
        commit,
        ...(first !== undefined && author !== undefined && { author }),
      });
    }
    return { dates, removed: [...renamedAway] };
  };

  return { add, finish };
}

interface LoggedChange {
  /** `A`, `C`, `D`, `M`, `R`, `T`; for a merge, the letters per parent, such as `MM`. */
  readonly status: string;
  readonly path: string;
  /** The former name, of a rename or copy. */
  readonly from?: string;
}

interface LoggedCommit {
  readonly hash: string;
  /** Committer time in seconds since 1970. */
  readonly time: number;
  /** The author's name in Git; can be empty. */
  readonly author: string;
  readonly changes: readonly LoggedChange[];
}

interface LogParser {
  push(text: string): void;
  end(): void;
}

/**
 * Parses the output of `git log -z --name-status --format=">%H %ct %aN"` as it arrives.
 *
 * The output is a sequence of NUL-ended tokens: a header per commit, then a status and one or two
 * paths per change. Git puts a line feed before the first status of a commit and an empty token
 * before that of a merge.
 */
function createLogParser(onCommit: (commit: LoggedCommit) => void): LogParser {
  let rest = "";
  let commit: { hash: string; time: number; author: string; changes: LoggedChange[] } | undefined;
  let status = "";
  let from: string | undefined;

  const flush = (): void => {
    if (commit !== undefined) onCommit(commit);
    commit = undefined;
  };
  const take = (token: string): void => {
    if (status !== "") {
      // Only a two-way rename or copy carries a score, and only it is followed by two paths.
      if (from === undefined && /^[RC]\d/.test(status)) {
        from = token;
        return;
      }
      const change = { status: status.replace(/\d+$/, ""), path: token };
      commit?.changes.push(from === undefined ? change : { ...change, from });
      status = "";
      from = undefined;
    } else if (token.startsWith(">")) {
      flush();
      const [, hash = "", time = "0", author = ""] = /^>(\S*) (\S*) (.*)$/s.exec(token) ?? [];
      commit = { hash, time: Number.parseInt(time, 10), author, changes: [] };
    } else {
      status = token.startsWith("\n") ? token.slice(1) : token;
    }
  };

  return {
    push(text) {
      const tokens = (rest + text).split("\0");
      rest = tokens.pop() ?? "";
      for (const token of tokens) take(token);
    },
    end() {
      flush();
    },
  };
}

export interface IndexReader {
  read<Result>(question: (database: Connection) => Result): Result;
}

/**
 * Asks Git for the commits that the index does not have. If the same commit is still checked out, this reads two files. Returns
 * undefined if there is nothing to save, and if Git fails: the next pass asks again.
 */
export async function readDatesUpdate(
  session: IndexReader,
  { root, signal }: { readonly root: string; readonly signal: AbortSignal },
): Promise<DatesUpdate | undefined> {
  const headKey = headKeyOf(root);
  if (headKey !== undefined && headKey === session.read((database) => readMeta(database, "head_key")))
    return undefined;
  if (headKey === "none") return { update: undefined, headKey };
  const state = await readGitState(root, signal);
  if (state.kind === "none") return undefined;
  const historyKey = session.read((database) => readMeta(database, "history_key"));
  const lookup = (path: string): FileDates | undefined =>
    session.read((database) => readDates(database, path));
  const previous = historyKey === undefined ? {} : { previous: { historyKey, lookup } };
  const update = await readFileDates({ root, state, signal, ...previous });
  return update === undefined && state.head !== undefined ? undefined : { update, headKey: headKey ?? "" };
}
