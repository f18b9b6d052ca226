import type { Folder } from "../tree/folder.ts";
import { DamagedIndexError } from "./damaged-index-error.ts";
import type { IndexDatabase } from "./index-database.ts";

/** The tree as it is stored. */
export function loadTree(database: IndexDatabase): Map<string, Folder> {
  const rows = database.all<
    [path: string, folders: string, files: string, sources: string, stamps: NodeJS.NonSharedUint8Array]
  >("SELECT path, folders, files, sources, stamps FROM folders");
  const tree = new Map<string, Folder>();
  for (const [path, folders, files, sources, stamps] of rows) {
    tree.set(path, {
      path,
      folders: toNames(folders),
      files: toNames(files),
      sources: toNames(sources),
      stamps: toStamps(stamps),
    });
  }
  return tree;
}

export function saveFolders(
  database: IndexDatabase,
  { folders, removed }: { readonly folders: readonly Folder[]; readonly removed: readonly string[] },
): void {
  for (const path of removed) database.run("DELETE FROM folders WHERE path = ?", path);
  for (const { path, folders: names, files, sources, stamps } of folders) {
    database.run(
      "INSERT OR REPLACE INTO folders (path, folders, files, sources, stamps) VALUES (?, ?, ?, ?, ?)",
      ...[path, names.join("/"), files.join("/"), sources.join("/")],
      new Uint8Array(stamps.buffer, stamps.byteOffset, stamps.byteLength),
    );
  }
}

function toNames(joined: string): string[] {
  return joined === "" ? [] : joined.split("/");
}

/** Bytes of a database lie at any offset, and numbers only at every eighth. */
function toStamps(bytes: Uint8Array): Float64Array {
  if (bytes.byteLength % 32 !== 0) throw new DamagedIndexError("A stamp is incomplete.");
  if (bytes.byteOffset % 8 === 0)
    return new Float64Array(bytes.buffer, bytes.byteOffset, bytes.byteLength / 8);
  return new Float64Array(bytes.slice().buffer);
}
