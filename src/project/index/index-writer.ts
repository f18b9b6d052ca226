import { classCodeOfKey, toKey } from "./block-key.ts";
import type { BlockEntry, FileEntry } from "./file-entry.ts";
import type { IndexDatabase } from "./index-database.ts";
import { readMeta, writeMeta } from "./meta.ts";
import { basesToNumber, numberBlocks, sharedBases } from "./number-blocks.ts";
import { refsOf } from "./refs.ts";
import { indexes } from "./schema.ts";
import { checksumOf, unpackBlock } from "./stored-block.ts";

/** Writes sources into an index, within one transaction of the caller's. */
export interface IndexWriter {
  /** Adds files, or replaces what is known of them. */
  putFiles(entries: readonly FileEntry[]): void;
  /** Returns how many of the paths were known. */
  removeFiles(paths: Iterable<string>): number;
  /** Numbers the blocks and updates the counts; to be called once, before the commit. */
  finish(): void;
}

export interface IndexWriterOptions {
  /** The index holds no files yet and has no SQL indexes: they are made at the end. */
  readonly isFirstFill: boolean;
}

/** Creates a writer for one transaction. */
export function createIndexWriter(database: IndexDatabase, { isFirstFill }: IndexWriterOptions): IndexWriter {
  const touchedBases = new Set<string>();
  const classCounts = new Map<number, number>();
  let nextNumber = readMeta(database, "next_number") ?? 0;
  let guidelineTotal = readMeta(database, "guidelines") ?? 0;

  const count = (classCode: number, difference: number): void => {
    classCounts.set(classCode, (classCounts.get(classCode) ?? 0) + difference);
  };

  const removeContent = (file: number): void => {
    const blocks = database.all<[key: number, base: string, data: string, checksum: number]>(
      "SELECT key, base, data, checksum FROM blocks WHERE file = ?",
      file,
    );
    for (const [key, base, data, checksum] of blocks) {
      touchedBases.add(base);
      count(classCodeOfKey(key), -1);
      for (const target of refsOf(unpackBlock(data, { key, checksum }))) {
        database.run("DELETE FROM refs WHERE target = ? AND key = ?", target, key);
      }
      database.run("DELETE FROM search WHERE rowid = ?", key);
      database.run("DELETE FROM blocks WHERE key = ?", key);
    }
    database.run("DELETE FROM features WHERE file = ?", file);
    const [guidelines] = database.get<[number]>("SELECT guideline_count FROM files WHERE id = ?", file) ?? [
      0,
    ];
    guidelineTotal -= guidelines;
  };

  const addFile = ({ path, hash, guidelines, guidelineCount, diagnostics }: FileEntry): number => {
    guidelineTotal += guidelineCount;
    const checksum = checksumOf(guidelines + diagnostics);
    const known = isFirstFill ? undefined : fileIdOf(database, path);
    if (known === undefined) {
      database.run(
        `INSERT INTO files (path, hash, guidelines, guideline_count, diagnostics, checksum)
         VALUES (?, ?, ?, ?, ?, ?)`,
        ...[path, hash, guidelines, guidelineCount, diagnostics, checksum],
      );
      return database.get<[number]>("SELECT last_insert_rowid()")?.[0] ?? 0;
    }
    removeContent(known);
    database.run(
      `UPDATE files SET hash = ?, guidelines = ?, guideline_count = ?, diagnostics = ?, checksum = ?
       WHERE id = ?`,
      ...[hash, guidelines, guidelineCount, diagnostics, checksum, known],
    );
    return known;
  };

  const addBlock = (
    block: BlockEntry,
    place: { readonly file: number; readonly position: number },
  ): number => {
    const key = toKey(block.classCode, nextNumber);
    nextNumber += 1;
    count(block.classCode, 1);
    if (!isFirstFill) touchedBases.add(block.base);
    database.run(
      "INSERT INTO blocks (key, file, position, kind, base, n, data, checksum) VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
      ...[
        key,
        place.file,
        place.position,
        block.kind,
        block.base,
        block.n,
        block.data,
        checksumOf(block.data),
      ],
    );
    for (const target of block.refs)
      database.run("INSERT INTO refs (target, key) VALUES (?, ?)", target, key);
    return key;
  };

  return {
    putFiles(entries) {
      const added: { readonly key: number; readonly search: BlockEntry["search"] }[] = [];
      for (const entry of entries) {
        const file = addFile(entry);
        for (const feature of entry.features) {
          database.run("INSERT INTO features (feature, file) VALUES (?, ?)", feature, file);
        }
        for (const [position, block] of entry.blocks.entries()) {
          added.push({ key: addBlock(block, { file, position }), search: block.search });
        }
      }
      // FTS5 writes out a segment whenever a key is lower than the one before it.
      added.sort((a, b) => a.key - b.key);
      for (const { key, search } of added) {
        database.run(
          "INSERT INTO search (rowid, title, body, tags, marks) VALUES (?, ?, ?, ?, ?)",
          ...[key, search.title, search.body, search.tags, search.marks],
        );
      }
    },
    removeFiles(paths) {
      let removed = 0;
      for (const path of paths) {
        const file = fileIdOf(database, path);
        if (file === undefined) continue;
        removeContent(file);
        database.run("DELETE FROM files WHERE id = ?", file);
        removed += 1;
      }
      return removed;
    },
    finish() {
      if (isFirstFill) database.exec(indexes);
      const bases = isFirstFill ? sharedBases(database) : basesToNumber(touchedBases);
      for (const base of bases) numberBlocks(database, base);
      for (const [code, difference] of classCounts) {
        if (difference === 0) continue;
        database.run(
          `INSERT INTO classes (code, blocks) VALUES (?, ?)
           ON CONFLICT (code) DO UPDATE SET blocks = blocks + excluded.blocks`,
          ...[code, difference],
        );
      }
      database.run("DELETE FROM classes WHERE blocks = 0");
      writeMeta(database, "next_number", nextNumber);
      writeMeta(database, "guidelines", guidelineTotal);
    },
  };
}

function fileIdOf(database: IndexDatabase, path: string): number | undefined {
  return database.get<[number]>("SELECT id FROM files WHERE path = ?", path)?.[0];
}
