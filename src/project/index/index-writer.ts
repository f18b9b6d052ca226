import { firstNumberOf } from "./block-id.ts";
import { classCodeOfKey } from "./block-key.ts";
import { addToClasses, type ClassCounts, countBlock } from "./class-counts.ts";
import { createContentWriter } from "./content-writer.ts";
import type { FileEntry } from "./file-entry.ts";
import type { IndexDatabase } from "./index-database.ts";
import { readMeta, writeMeta } from "./meta.ts";
import { basesToNumber, numberBlocks } from "./number-blocks.ts";
import { refsOf } from "./refs.ts";
import { recordsChecksum, unpackEdges } from "./stored-block.ts";

/** Changes single files of an index, within one transaction of the caller's. */
export interface IndexWriter {
  /** Adds a file, or replaces what is known of it. */
  putFile(entry: FileEntry): void;
  /** Returns whether the path was known. */
  removeFile(path: string): boolean;
  /** Numbers the blocks and updates the counts; to be called once, before the commit. */
  finish(): void;
}

/** Creates a writer for one transaction. */
export function createIndexWriter(database: IndexDatabase): IndexWriter {
  const touchedBases = new Set<string>();
  const counts: ClassCounts = new Map();
  let guidelines = readMeta(database, "guidelines") ?? 0;
  const content = createContentWriter(database, {
    nextNumber: readMeta(database, "next_number") ?? 0,
    onBlock({ base, classCode }) {
      touchedBases.add(base);
      countBlock(counts, classCode, 1);
    },
  });

  /** Takes everything out of a file but its own row. */
  const empty = (file: number): void => {
    const blocks = database.all<[key: number, base: string, edges: string, checksum: number]>(
      "SELECT key, base, edges, edges_checksum FROM blocks WHERE file = ?",
      file,
    );
    for (const [key, base, edges, checksum] of blocks) {
      touchedBases.add(base);
      countBlock(counts, classCodeOfKey(key), -1);
      for (const target of refsOf(unpackEdges(edges, checksum))) {
        database.run("DELETE FROM refs WHERE target = ? AND key = ?", target, key);
      }
      database.run("DELETE FROM search WHERE rowid = ?", key);
      database.run("DELETE FROM blocks WHERE key = ?", key);
    }
    database.run("DELETE FROM features WHERE file = ?", file);
    const [count] = database.get<[number]>("SELECT guideline_count FROM files WHERE id = ?", file) ?? [0];
    guidelines -= count;
  };

  return {
    putFile(entry) {
      const numberOf = ({ kind }: { readonly kind: number }): number => firstNumberOf(kind);
      const file = fileIdOf(database, entry.path);
      guidelines += entry.guidelineCount;
      if (file === undefined) return content.add(entry, numberOf);
      empty(file);
      const { hash, guidelineCount, diagnostics } = entry;
      database.run(
        `UPDATE files SET hash = ?, guidelines = ?, guideline_count = ?, diagnostics = ?, checksum = ?
         WHERE id = ?`,
        ...[hash, entry.guidelines, guidelineCount, diagnostics],
        ...[recordsChecksum(entry.guidelines, diagnostics), file],
      );
      content.fill(file, entry, numberOf);
    },
    removeFile(path) {
      const file = fileIdOf(database, path);
      if (file === undefined) return false;
      empty(file);
      database.run("DELETE FROM files WHERE id = ?", file);
      return true;
    },
    finish() {
      content.flushSearch();
      for (const base of basesToNumber(touchedBases)) numberBlocks(database, base);
      addToClasses(database, counts);
      writeMeta(database, "next_number", content.nextNumber());
      writeMeta(database, "guidelines", guidelines);
    },
  };
}

function fileIdOf(database: IndexDatabase, path: string): number | undefined {
  return database.get<[number]>("SELECT id FROM files WHERE path = ?", path)?.[0];
}
