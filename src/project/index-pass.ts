import type { IgnoreScope } from "../files/ignore-scope.ts";
import type { FileEntry } from "./index/file-entry.ts";
import type { IndexDatabase } from "./index/index-database.ts";
import { createIndexWriter, type IndexWriter } from "./index/index-writer.ts";
import { readMeta, writeMeta } from "./index/meta.ts";
import { beginWrite, rollback } from "./index/transaction.ts";
import { saveFolders } from "./index/tree-store.ts";
import type { PassSteps } from "./pass-steps.ts";
import type { RefreshOptions } from "./project.ts";
import { parseSource } from "./read/parse-source.ts";
import type { SourceCatalog } from "./read/source-catalog.ts";
import type { SourceReader } from "./read/source-reader.ts";
import { type Folder, setStamp } from "./tree/folder.ts";
import type { Candidate } from "./tree/look-at-folder.ts";
import { scanTree, type TreeChange } from "./tree/scan-tree.ts";

export interface IndexPassOptions {
  readonly root: string;
  /** A connection that nobody reads from meanwhile. */
  readonly database: IndexDatabase;
  readonly catalog: SourceCatalog;
  readonly reader: SourceReader;
  /** The tree of the index at `generation`; brought up to date when the pass is committed. */
  readonly tree: Map<string, Folder>;
  readonly generation: number;
  readonly scope: IgnoreScope;
  readonly outerRules: string;
  /** Look at these folders only. */
  readonly folders?: readonly string[];
  readonly onProgress?: RefreshOptions["onProgress"];
}

export type IndexPassResult =
  | { readonly kind: "done"; readonly parsed: number; readonly removed: number; readonly generation: number }
  /** Another process wrote meanwhile: load the tree again, then start over. */
  | { readonly kind: "outdated" };

/** From so many sources on, they are parsed while the index is locked, and written bit by bit. */
const manySources = 64;
/** Files per write. Sorting more of them by key gives the full-text index fewer, larger segments. */
const batchSize = 1024;

/** Brings an index up to date with the disk, in one transaction. */
export function* indexPass(options: IndexPassOptions): PassSteps<IndexPassResult> {
  const { root, database, catalog, tree, generation, scope } = options;
  const isFirstFill = generation === 0;
  const isStale = readMeta(database, "outer_rules") !== options.outerRules;
  options.onProgress?.({ done: 0, total: 0, phase: "walk" });
  const change = yield* scanTree({
    root,
    previous: tree,
    scope,
    isSource: catalog.isSource,
    ...(options.folders && !isStale && { folders: options.folders }),
    isStale,
  });
  const nothing = change.folders.length + change.removedFolders.length + change.candidates.length === 0;
  if (nothing && !isFirstFill && !isStale) return { kind: "done", parsed: 0, removed: 0, generation };

  const isLarge = change.candidates.length > manySources;
  let isLocked = false;
  const lock = function* (): PassSteps<boolean> {
    yield* beginWrite(database);
    isLocked = true;
    return (readMeta(database, "generation") ?? 0) === generation;
  };
  try {
    if (isLarge && !(yield* lock())) return { kind: "outdated" };
    const entries: FileEntry[] = [];
    const removed = new Set(change.removed);
    let writer: IndexWriter | undefined;
    let parsed = 0;
    const known = createHashLookup(database, isFirstFill);
    for (const [index, candidate] of change.candidates.entries()) {
      const entry = readCandidate(candidate, { options, known });
      if (entry === "gone") removed.add(candidate.path);
      else if (entry !== "same") entries.push(entry);
      if (isLarge && entries.length >= batchSize) {
        writer ??= createIndexWriter(database, { isFirstFill });
        writer.putFiles(entries);
        parsed += entries.length;
        entries.length = 0;
        options.onProgress?.({ done: index + 1, total: change.candidates.length, phase: "read" });
      }
      yield;
    }
    if (!isLocked && !(yield* lock())) return { kind: "outdated" };
    writer ??= createIndexWriter(database, { isFirstFill });
    writer.putFiles(entries);
    parsed += entries.length;
    const removedCount = writer.removeFiles(removed);
    options.onProgress?.({ done: change.candidates.length, total: change.candidates.length, phase: "write" });
    writer.finish();
    const next =
      hasContentChanged(change, { tree, parsed, removed: removedCount }) || isFirstFill
        ? generation + 1
        : generation;
    saveFolders(database, { folders: change.folders, removed: change.removedFolders });
    writeMeta(database, "generation", next);
    writeMeta(database, "outer_rules", options.outerRules);
    database.exec("COMMIT");
    isLocked = false;
    for (const path of change.removedFolders) tree.delete(path);
    for (const folder of change.folders) tree.set(folder.path, folder);
    return { kind: "done", parsed, removed: removedCount, generation: next };
  } finally {
    if (isLocked) rollback(database);
  }
}

/** Whether more than stamps differs: a source, or which files there are. */
function hasContentChanged(
  change: TreeChange,
  {
    tree,
    parsed,
    removed,
  }: { readonly tree: ReadonlyMap<string, Folder>; readonly parsed: number; readonly removed: number },
): boolean {
  if (parsed + removed + change.removedFolders.length > 0) return true;
  return change.folders.some((folder) => {
    const before = tree.get(folder.path);
    if (before === undefined) return true;
    return (
      before.files.join("/") !== folder.files.join("/") ||
      before.sources.join("/") !== folder.sources.join("/")
    );
  });
}

type HashLookup = (path: string) => { readonly hash: string; readonly diagnostics: string } | undefined;

function createHashLookup(database: IndexDatabase, isFirstFill: boolean): HashLookup {
  if (isFirstFill) return () => undefined;
  return (path) => {
    const row = database.get<[string, string]>("SELECT hash, diagnostics FROM files WHERE path = ?", path);
    return row && { hash: row[0], diagnostics: row[1] };
  };
}

/** Reads a source, and parses it unless it is what the index holds already. */
function readCandidate(
  candidate: Candidate,
  { options, known }: { readonly options: IndexPassOptions; readonly known: HashLookup },
): FileEntry | "same" | "gone" {
  const { path, problem } = candidate;
  const read =
    problem === undefined ? options.reader(path) : ({ kind: "problem", diagnostic: problem } as const);
  if (read.kind === "gone") return "gone";
  if ("seen" in read && read.seen !== undefined) setStamp(candidate.stamps, candidate.stampAt, read.seen);
  const before = known(path);
  if (read.kind === "bytes" && before?.hash === read.hash) return "same";
  const entry = parseSource(path, { read, catalog: options.catalog });
  const isSameProblem =
    read.kind === "problem" && before?.hash === "" && before.diagnostics === entry.diagnostics;
  return isSameProblem ? "same" : entry;
}
