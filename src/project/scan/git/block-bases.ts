import { decodeText } from "../source-reader.ts";
import { blobAt, type FileHistory, readBlobs } from "./file-history.ts";

/** The text of a file with the line ends that comparisons expect: Git can change them. */
export function withLineFeeds(text: string): string {
  return text.replaceAll("\r\n", "\n");
}

interface BasesRequest {
  readonly root: string;
  /** The history of all files of `texts`. */
  readonly history: FileHistory;
  /** Texts of blocks by the file that has them. */
  readonly texts: ReadonlyMap<string, readonly string[]>;
  readonly signal?: AbortSignal | undefined;
}

/** Files whose versions are in memory together. */
const filesAtOnce = 100;

/**
 * Finds for each text the commit since which its file contains it, whole lines and in one piece, wherever in the file: what `git log -L`
 * tells about lines, for all blocks of a project at once. A text that the newest commit does not contain has none. Undefined if Git cannot answer.
 *
 * A merge keeps a text that one of its parents has.
 */
export async function findBlockBases({
  root,
  history,
  texts,
  signal,
}: BasesRequest): Promise<ReadonlyMap<string, ReadonlyMap<string, number>> | undefined> {
  const found = new Map<string, ReadonlyMap<string, number>>();
  const paths = [...texts.keys()];
  for (let from = 0; from < paths.length; from += filesAtOnce) {
    const some = paths.slice(from, from + filesAtOnce);
    const ids = some.flatMap((path) => [...(history.changes.get(path)?.values() ?? [])]);
    const blobs = await readBlobs(root, new Set(ids.flatMap((id) => id ?? [])), signal);
    if (blobs === undefined) return undefined;
    for (const path of some) {
      const bodies = new Map<string, string>();
      for (const id of history.changes.get(path)?.values() ?? []) {
        const bytes = id === undefined ? undefined : blobs.get(id);
        if (id !== undefined && bytes !== undefined)
          bodies.set(id, `\n${withLineFeeds(decodeText(bytes, path).text)}\n`);
      }
      found.set(path, basesIn(history, { path, bodies, texts: texts.get(path) ?? [] }));
    }
  }
  return found;
}

interface FileTexts {
  readonly path: string;
  /** Texts of the file by blob, each between two line ends. */
  readonly bodies: ReadonlyMap<string, string>;
  readonly texts: readonly string[];
}

function basesIn(history: FileHistory, { path, bodies, texts }: FileTexts): ReadonlyMap<string, number> {
  const bases = new Map<string, number>();
  if (history.hashes.length === 0) return bases;
  const changes = history.changes.get(path);
  const havingAt = (commit: number, open: readonly string[]): readonly string[] => {
    const body = bodies.get(blobAt(history, path, commit) ?? "");
    return body === undefined ? [] : open.filter((text) => body.includes(`\n${text}\n`));
  };
  const pending = [{ at: 0, open: havingAt(0, texts) }];
  for (let next = pending.pop(); next !== undefined; next = pending.pop()) {
    let { at, open } = next;
    // A commit that left the file alone has the text from its first parent.
    for (let first = history.parents[at]?.[0]; first !== undefined && changes?.has(at) !== true; ) {
      at = first;
      first = history.parents[at]?.[0];
    }
    for (const parent of history.parents[at] ?? []) {
      if (open.length === 0) break;
      const kept = new Set(havingAt(parent, open));
      if (kept.size === 0) continue;
      pending.push({ at: parent, open: [...kept] });
      open = open.filter((text) => !kept.has(text));
    }
    for (const text of open) bases.set(text, at);
  }
  return bases;
}
