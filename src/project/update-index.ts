import type { IgnoreScope } from "../files/ignore-scope.ts";
import type { FileEntry } from "./index/file-entry.ts";
import type { IndexDatabase } from "./index/index-database.ts";
import { createIndexWriter } from "./index/index-writer.ts";
import { loadLinks, saveLinks } from "./index/link-store.ts";
import { readMeta, writeMeta } from "./index/meta.ts";
import { beginWrite, rollback } from "./index/transaction.ts";
import { type StoredTree, saveTree } from "./index/tree-store.ts";
import type { PassSteps } from "./pass-steps.ts";
import type { RefreshOptions } from "./project.ts";
import type { SourceCatalog } from "./read/source-catalog.ts";
import type { SourceReader } from "./read/source-reader.ts";
import { readCandidate } from "./read-candidate.ts";
import { scanProject } from "./tree/scan-project.ts";
import type { TreeChange } from "./tree/scan-tree.ts";

export interface UpdateIndexOptions {
  readonly root: string;
  readonly reader: IndexDatabase;
  /** Gives a connection that nobody reads from meanwhile. */
  readonly writer: () => IndexDatabase;
  readonly catalog: SourceCatalog;
  readonly readSource: SourceReader;
  /** The tree of the index at `generation`; brought up to date with the commit. */
  readonly tree: StoredTree;
  readonly generation: number;
  readonly scope: IgnoreScope;
  readonly outerRules: string;
  /** Look at these folders only. */
  readonly folders?: readonly string[];
  readonly onProgress?: RefreshOptions["onProgress"];
}

export type UpdateResult =
  | { readonly kind: "done"; readonly parsed: number; readonly removed: number; readonly generation: number }
  /** Another process wrote meanwhile: load the tree again, then start over. */
  | { readonly kind: "outdated" };

/** Brings an index up to date with the disk, in one transaction. */
export function* updateIndex(options: UpdateIndexOptions): PassSteps<UpdateResult> {
  const { root, reader, catalog, readSource, tree, generation, scope, outerRules, onProgress } = options;
  const isStale = readMeta(reader, "outer_rules") !== outerRules;
  onProgress?.({ done: 0, total: 0, phase: "walk" });
  const change = yield* scanProject({
    root,
    previous: tree.folders,
    scope,
    catalog,
    links: loadLinks(reader),
    ...(options.folders && { folders: options.folders }),
    isStale,
  });
  if (isEmpty(change) && !isStale && !change.haveLinksChanged)
    return { kind: "done", parsed: 0, removed: 0, generation };

  const entries: FileEntry[] = [];
  const removed = new Set(change.removed);
  const total = change.candidates.length;
  for (const [index, candidate] of change.candidates.entries()) {
    const known = change.renamed.has(candidate.path) ? undefined : knownFile(reader, candidate.path);
    const entry = readCandidate(candidate, { readSource, catalog, aliases: change.aliases, known });
    if (entry === "gone") removed.add(candidate.path);
    else if (entry !== "same") entries.push(entry);
    if (index % 256 === 255) onProgress?.({ done: index + 1, total, phase: "read" });
    yield;
  }

  const database = options.writer();
  yield* beginWrite(database);
  try {
    if (readMeta(database, "generation") !== generation) {
      rollback(database);
      return { kind: "outdated" };
    }
    onProgress?.({ done: total, total, phase: "write" });
    const writer = createIndexWriter(database);
    for (const entry of entries) writer.putFile(entry);
    let removedCount = 0;
    for (const path of removed) if (writer.removeFile(path)) removedCount += 1;
    writer.finish();
    if (change.haveLinksChanged) saveLinks(database, change.links);
    const isChanged =
      entries.length + removedCount > 0 || change.haveLinksChanged || haveFilesChanged(change, tree);
    const next = isChanged ? generation + 1 : generation;
    saveTree(database, tree, change);
    writeMeta(database, "generation", next);
    writeMeta(database, "outer_rules", outerRules);
    database.exec("COMMIT");
    return { kind: "done", parsed: entries.length, removed: removedCount, generation: next };
  } catch (error) {
    rollback(database);
    throw error;
  }
}

function isEmpty({ folders, removedFolders, candidates }: TreeChange): boolean {
  return folders.length + removedFolders.length + candidates.length === 0;
}

/** Whether more than stamps differs: which files there are. */
function haveFilesChanged(change: TreeChange, tree: StoredTree): boolean {
  if (change.removedFolders.length > 0) return true;
  return change.folders.some((folder) => {
    const before = tree.folders.get(folder.path);
    return before?.files !== folder.files || before.sources !== folder.sources;
  });
}

function knownFile(database: IndexDatabase, path: string): { hash: string; diagnostics: string } | undefined {
  const row = database.get<[string, string]>("SELECT hash, diagnostics FROM files WHERE path = ?", path);
  return row && { hash: row[0], diagnostics: row[1] };
}
