import { toKey } from "./block-key.ts";
import type { BlockEntry, FileEntry } from "./file-entry.ts";
import type { IndexDatabase } from "./index-database.ts";
import { recordsChecksum } from "./stored-block.ts";

/** Adds what source files hold to an index, row by row, within a transaction of the caller's. */
export interface ContentWriter {
  /** Adds a file and all in it. `numberOf` gives each block the number of its id. */
  add(entry: FileEntry, numberOf: (block: BlockEntry) => number): void;
  /** Adds the same to a file that is there, and empty. */
  fill(file: number, entry: FileEntry, numberOf: (block: BlockEntry) => number): void;
  /** Writes the words of all blocks added since it last did so, if there are so many. */
  flushSearch(atLeast?: number): void;
  /** The number that the next block's key is made from. */
  nextNumber(): number;
}

export interface ContentWriterOptions {
  readonly nextNumber: number;
  /** Hears of every block. */
  readonly onBlock: (block: BlockEntry) => void;
}

export function createContentWriter(
  database: IndexDatabase,
  { nextNumber, onBlock }: ContentWriterOptions,
): ContentWriter {
  const insertFile = database.statement(
    `INSERT INTO files (id, path, hash, guidelines, guideline_count, diagnostics, checksum)
     VALUES (?, ?, ?, ?, ?, ?, ?)`,
  );
  const insertBlock = database.statement(
    `INSERT INTO blocks (
       key, file, position, kind, base, n, title, content, data, checksum, edges, edges_checksum
     ) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
  );
  const insertRef = database.statement("INSERT INTO refs (target, key) VALUES (?, ?)");
  const insertFeature = database.statement("INSERT INTO features (feature, file) VALUES (?, ?)");
  const insertSearch = database.statement(
    "INSERT INTO search (rowid, title, body, tags, marks) VALUES (?, ?, ?, ?, ?)",
  );
  let number = nextNumber;
  let lastFile = database.get<[number]>("SELECT max(id) FROM files")?.[0] ?? 0;
  let unsearched: { readonly key: number; readonly block: BlockEntry }[] = [];

  const fill: ContentWriter["fill"] = (file, { features, blocks }, numberOf) => {
    for (const feature of features) insertFeature.run(feature, file);
    for (let position = 0; position < blocks.length; position += 1) {
      const block = blocks[position];
      if (block === undefined) continue;
      const { kind, base, title, content, data, checksum, edges, edgesChecksum } = block;
      const key = toKey(block.classCode, number);
      number += 1;
      const n = numberOf(block);
      insertBlock.run(
        key,
        file,
        position,
        kind,
        base,
        n,
        title,
        content,
        data,
        checksum,
        edges,
        edgesChecksum,
      );
      for (const target of block.refs) insertRef.run(target, key);
      unsearched.push({ key, block });
      onBlock(block);
    }
  };

  return {
    add(entry, numberOf) {
      const { path, hash, guidelines, guidelineCount, diagnostics } = entry;
      const checksum = recordsChecksum(guidelines, diagnostics);
      lastFile += 1;
      insertFile.run(lastFile, path, hash, guidelines, guidelineCount, diagnostics, checksum);
      fill(lastFile, entry, numberOf);
    },
    fill,
    flushSearch(atLeast = 1) {
      if (unsearched.length < atLeast) return;
      // FTS5 writes out a segment whenever a key is lower than the one before it.
      unsearched.sort((a, b) => a.key - b.key);
      for (const { key, block } of unsearched) {
        const { searchTitle, searchBody, tags, marks } = block;
        insertSearch.run(key, searchTitle || block.title, searchBody || block.content, tags, marks);
      }
      unsearched = [];
    },
    nextNumber: () => number,
  };
}
