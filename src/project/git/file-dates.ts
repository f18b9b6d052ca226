import type { GitState } from "./git-state.ts";
import { createLogParser, type LoggedCommit } from "./parse-log.ts";
import { runGit } from "./run-git.ts";

/** When a file was committed. Times are in whole seconds since 1970, of the committer. */
export interface FileDates {
  /** Absent where a shallow clone ends before it. Follows renames. */
  readonly first?: number;
  readonly last: number;
  /** The commit of `last`. */
  readonly commit: string;
}

export interface FileDatesUpdate {
  /** Keep it with the dates and hand it back as `previous.historyKey`. */
  readonly historyKey: string;
  /** True: `dates` is everything, forget what was cached. False: it goes on top of the cache. */
  readonly full: boolean;
  /**
   * By path, relative to the root that was asked about. Deleted files are among them: keep those
   * too, because a file that comes back goes on where it was.
   */
  readonly dates: ReadonlyMap<string, FileDates>;
  /** Paths to forget: renamed away. Apply before `dates`. */
  readonly removed: readonly string[];
}

export interface ReadFileDatesOptions {
  readonly root: string;
  readonly state: GitState;
  /** What the last update left; only commits after it are read, unless history was rewritten. */
  readonly previous?: { readonly historyKey: string; lookup(path: string): FileDates | undefined };
  readonly signal?: AbortSignal;
  /** For the whole history; default 120,000. */
  readonly timeoutMs?: number;
}

/**
 * Reads the first and last commit date of every file below `root` in one pass of `git log`.
 *
 * Undefined when there is nothing to know (no repository, no commit) or Git failed or took too
 * long; dates are then left out. Renames are followed. A change made on a side branch under the
 * old name of a file that was renamed meanwhile counts from the merge on.
 */
export async function readFileDates(options: ReadFileDatesOptions): Promise<FileDatesUpdate | undefined> {
  const { state, previous } = options;
  if (state.kind === "none" || state.head === undefined) return undefined;
  if (previous?.historyKey === state.historyKey) {
    return { historyKey: state.historyKey, full: false, dates: new Map(), removed: [] };
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
  return { historyKey: state.historyKey, full: base === undefined, ...history.finish(lookup) };
}

/** The cached head, when the new one descends from it and the same commits are missing. */
async function continuation(
  { root, previous, signal }: ReadFileDatesOptions,
  state: Extract<GitState, { kind: "repository" }>,
): Promise<string | undefined> {
  const [head, shallowKey] = previous?.historyKey.split(":") ?? [];
  if (!head || state.head === undefined || shallowKey !== state.historyKey.split(":")[1]) return undefined;
  const result = await runGit(["merge-base", "--is-ancestor", head, state.head], { cwd: root, signal });
  return result.status === "ok" ? head : undefined;
}

async function readLog(options: ReadFileDatesOptions, range: string, history: History): Promise<boolean> {
  const parser = createLogParser(history.add);
  const result = await runGit(
    [
      "log",
      "-z",
      "--format=>%H %ct",
      "--name-status",
      "--diff-merges=combined",
      "--find-renames",
      "--root",
      "--relative",
      "--no-show-signature",
      "--no-ext-diff",
      "--no-textconv",
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
      maxLength: Number.POSITIVE_INFINITY,
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
  /** The name that commits older than those seen know the file by; undefined when none does. */
  oldName: string | undefined;
}

/**
 * Collects commits, newest first, into one record per file, under its newest name.
 *
 * A deletion is no change of its file, which may live on: a side branch may have deleted what the
 * merge kept, and a later commit may bring it back.
 */
function createHistory(boundary: ReadonlySet<string>): History {
  const drafts = new Map<string, Draft>();
  // From a name as older commits know it to the newest name of the file; null for a name that
  // belonged to a file which gave way to a renamed one.
  const newestName = new Map<string, string | null>();
  const renamedAway = new Set<string>();

  const touch = (path: string, commit: LoggedCommit): string | undefined => {
    const newest = newestName.get(path);
    if (newest === null) return undefined;
    const draft = drafts.get(newest ?? path);
    if (newest === undefined || draft === undefined) {
      newestName.set(path, path);
      drafts.set(path, { first: commit.time, last: commit.time, commit: commit.hash, oldName: path });
      return path;
    }
    if (draft.first !== undefined) draft.first = Math.min(draft.first, commit.time);
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
    // Names change after all files of the commit are seen: one commit may swap two names.
    for (const { to } of renames) newestName.set(to, null);
    for (const { from } of renames) {
      // A newer file of the former name starts after this commit.
      const taken = draftOf(from);
      if (taken !== undefined) taken.oldName = undefined;
      else if (!drafts.has(from)) renamedAway.add(from);
    }
    for (const { from, newest } of renames) {
      newestName.set(from, newest ?? null);
      const draft = newest === undefined ? undefined : drafts.get(newest);
      if (draft !== undefined) draft.oldName = from;
    }
  };

  const finish: History["finish"] = (lookup) => {
    const dates = new Map<string, FileDates>();
    for (const [path, { first, last, commit, oldName }] of drafts) {
      const known = oldName === undefined ? undefined : lookup?.(oldName);
      const earliest = known === undefined ? first : known.first;
      dates.set(path, earliest === undefined ? { last, commit } : { first: earliest, last, commit });
    }
    return { dates, removed: [...renamedAway] };
  };

  return { add, finish };
}
