import { crc32 } from "node:zlib";
import { countNames, type Folder, stampLength } from "../tree/folder.ts";
import { DamagedIndexError } from "./damaged-index-error.ts";
import type { IndexDatabase } from "./index-database.ts";

/** Folders per row: few rows are quick to load, and small rows are quick to write. */
const foldersPerRow = 256;

/** A tree in memory that knows how it is stored. */
export interface StoredTree {
  readonly folders: Map<string, Folder>;
  /** The row that each folder is in. */
  readonly rows: Map<string, number>;
}

function createStoredTree(): StoredTree {
  return { folders: new Map(), rows: new Map() };
}

/**
 * The tree of an index. A row holds, for each of its folders, the path, folders, files and sources,
 * all joined by "//", and the stamps one after another.
 */
export function loadTree(database: IndexDatabase): StoredTree {
  const tree = createStoredTree();
  const stored = database.all<
    [row: number, names: string, stamps: NodeJS.NonSharedUint8Array, checksum: number]
  >("SELECT id, names, stamps, checksum FROM tree ORDER BY id");
  for (const [row, names, bytes, checksum] of stored) {
    if (crc32(bytes, crc32(names)) !== checksum) throw new DamagedIndexError("The tree is damaged.");
    const stamps = new Float64Array(
      bytes.byteOffset % 8 === 0 ? bytes.buffer : bytes.slice().buffer,
      0,
      bytes.length / 8,
    );
    const fields = names.split("//");
    let stampsAt = 0;
    for (let at = 0; at + 3 < fields.length; at += 4) {
      const path = fields[at] ?? "";
      const sources = fields[at + 3] ?? "";
      tree.folders.set(path, {
        path,
        folders: fields[at + 1] ?? "",
        files: fields[at + 2] ?? "",
        sources,
        stamps,
        stampsAt,
      });
      tree.rows.set(path, row);
      stampsAt += (countNames(sources) + 1) * stampLength;
    }
  }
  return tree;
}

export interface TreeUpdate {
  /** New folders, and those that differ. */
  readonly folders: readonly Folder[];
  readonly removedFolders: readonly string[];
}

/** Brings a tree up to date, in memory and in the index: only rows of folders that differ are written. */
export function saveTree(database: IndexDatabase, tree: StoredTree, update: TreeUpdate): void {
  const touched = new Set<number>();
  for (const path of update.removedFolders) {
    const row = tree.rows.get(path);
    if (row !== undefined) touched.add(row);
    tree.folders.delete(path);
    tree.rows.delete(path);
  }
  let last = 0;
  let inLast = 0;
  for (const row of tree.rows.values()) {
    if (row > last) inLast = 0;
    if (row >= last) inLast += 1;
    last = Math.max(last, row);
  }
  for (const folder of update.folders) {
    let row = tree.rows.get(folder.path);
    if (row === undefined) {
      if (inLast >= foldersPerRow) {
        last += 1;
        inLast = 0;
      }
      inLast += 1;
      row = last;
      tree.rows.set(folder.path, row);
    }
    tree.folders.set(folder.path, folder);
    touched.add(row);
  }
  const members = new Map([...touched].map((row): [number, Folder[]] => [row, []]));
  for (const folder of tree.folders.values()) members.get(tree.rows.get(folder.path) ?? -1)?.push(folder);
  for (const [row, folders] of members) {
    if (folders.length > 0) saveTreeRows(database, [toRow(row, folders)]);
    else database.run("DELETE FROM tree WHERE id = ?", row);
  }
}

/** A row of the tree, ready to be written and to be sent to another thread. */
export interface TreeRow {
  readonly id: number;
  readonly names: string;
  readonly stamps: Uint8Array;
}

/** The rows of a tree that is stored for the first time, in the order of the folders. */
export function toTreeRows(folders: readonly Folder[]): TreeRow[] {
  const rows: TreeRow[] = [];
  for (let at = 0; at < folders.length; at += foldersPerRow) {
    rows.push(toRow(rows.length, folders.slice(at, at + foldersPerRow)));
  }
  return rows;
}

export function saveTreeRows(database: IndexDatabase, rows: readonly TreeRow[]): void {
  for (const { id, names, stamps } of rows) {
    database.run(
      "INSERT OR REPLACE INTO tree (id, names, stamps, checksum) VALUES (?, ?, ?, ?)",
      ...[id, names, stamps, crc32(stamps, crc32(names))],
    );
  }
}

function toRow(id: number, folders: readonly Folder[]): TreeRow {
  const names = folders.flatMap(({ path, folders: inner, files, sources }) => [path, inner, files, sources]);
  const lengths = folders.map(({ sources }) => (countNames(sources) + 1) * stampLength);
  const stamps = new Float64Array(lengths.reduce((sum, length) => sum + length, 0));
  let at = 0;
  for (const [index, folder] of folders.entries()) {
    const length = lengths[index] ?? 0;
    stamps.set(folder.stamps.subarray(folder.stampsAt, folder.stampsAt + length), at);
    at += length;
  }
  return { id, names: names.join("//"), stamps: new Uint8Array(stamps.buffer) };
}
