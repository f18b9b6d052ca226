import { runGit } from "../../../processes/git.ts";
import { readObjects } from "./read-objects.ts";

/** The commits behind a commit, as far as some files are concerned. A commit is the number of its place, children before parents. */
export interface FileHistory {
  readonly hashes: readonly string[];
  /** Committer times in seconds since 1970. */
  readonly times: readonly number[];
  /** The first one first; absent for commits that a shallow clone lacks. */
  readonly parents: readonly (readonly number[])[];
  /** The blob of a file after each commit that changed it against its first parent; undefined where the commit removed it. */
  readonly changes: ReadonlyMap<string, ReadonlyMap<number, string | undefined>>;
}

interface HistoryRequest {
  readonly root: string;
  readonly head: string;
  readonly paths: ReadonlySet<string>;
  readonly signal?: AbortSignal | undefined;
}

/** Git compares each entry of a folder with each path, so a few folders are asked about, or all. */
const mostFolders = 8;

/** Reads the history of files in one pass of `git log`. Undefined if Git cannot answer. */
export async function readFileHistory({
  root,
  head,
  paths,
  signal,
}: HistoryRequest): Promise<FileHistory | undefined> {
  const folders = new Set(Array.from(paths, (path) => path.split("/")[0] ?? path));
  const parser = new HistoryParser(paths);
  const result = await runGit(
    [
      "log",
      "-z",
      "--format=>%H %ct %P",
      "--topo-order",
      // The parents are those that are listed.
      "--parents",
      "--raw",
      "--no-abbrev",
      "--no-renames",
      "--diff-merges=first-parent",
      "--root",
      "--relative",
      "--no-notes",
      "--no-color",
      "--ignore-submodules=all",
      "--end-of-options",
      head,
      "--",
      ...(folders.size > mostFolders ? ["."] : folders),
    ],
    {
      cwd: root,
      signal,
      timeoutMs: 120_000,
      maxBytes: Number.POSITIVE_INFINITY,
      onOutput: (text) => parser.push(text),
    },
  );
  return result.status === "ok" ? parser.end() : undefined;
}

/** Tokens that NUL ends: a header per commit, then two tokens per change; Git puts a line feed before the first change. */
class HistoryParser {
  readonly #hashes: string[] = [];
  readonly #times: number[] = [];
  readonly #parents: string[][] = [];
  readonly #changes: Map<string, Map<number, string | undefined>>;
  #rest = "";
  #blob: string | undefined;

  constructor(paths: ReadonlySet<string>) {
    this.#changes = new Map(Array.from(paths, (path) => [path, new Map()]));
  }

  push(text: string): void {
    const tokens = (this.#rest + text).split("\0");
    this.#rest = tokens.pop() ?? "";
    for (const token of tokens) this.#take(token);
  }

  #take(token: string): void {
    if (this.#blob !== undefined) {
      const blob = /^0+$/.test(this.#blob) ? undefined : this.#blob;
      this.#changes.get(token)?.set(this.#hashes.length - 1, blob);
      this.#blob = undefined;
    } else if (token.startsWith(">")) {
      const [hash = "", time = "0", ...parents] = token.slice(1).split(" ");
      this.#hashes.push(hash);
      this.#times.push(Number(time));
      this.#parents.push(parents);
    } else this.#blob = token.split(" ")[3];
  }

  end(): FileHistory {
    const numberOf = new Map(this.#hashes.map((hash, at) => [hash, at]));
    const parents = this.#parents.map((names) => names.flatMap((name) => numberOf.get(name) ?? []));
    return { hashes: this.#hashes, times: this.#times, parents, changes: this.#changes };
  }
}

/** The blob of a file at a commit: that of the nearest change along the first parents. */
export function blobAt({ parents, changes }: FileHistory, path: string, commit: number): string | undefined {
  const own = changes.get(path);
  for (let at: number | undefined = commit; at !== undefined; at = parents[at]?.[0])
    if (own?.has(at)) return own.get(at);
  return undefined;
}

/** Tells how many commits that are not behind a commit have changed a file; merges bring in changes of others. */
export function commitCounter({ parents, changes }: FileHistory, base: number): (path: string) => number {
  const isBehind = new Uint8Array(parents.length);
  isBehind[base] = 1;
  for (let at = base; at < parents.length; at += 1)
    if (isBehind[at] === 1) for (const parent of parents[at] ?? []) isBehind[parent] = 1;
  return (path) =>
    [...(changes.get(path)?.keys() ?? [])].filter(
      (at) => isBehind[at] !== 1 && (parents[at]?.length ?? 0) < 2,
    ).length;
}

/** Reads blobs by their ids. Undefined if Git cannot answer; a blob that the repository lacks is left out. */
export async function readBlobs(
  root: string,
  ids: Iterable<string>,
  signal: AbortSignal | undefined,
): Promise<ReadonlyMap<string, Buffer> | undefined> {
  const all = [...new Set(ids)];
  const contents = await readObjects(all, { cwd: root, signal });
  if (contents === undefined) return undefined;
  return new Map(all.flatMap((id, at) => (contents[at] === undefined ? [] : [[id, contents[at]] as const])));
}
