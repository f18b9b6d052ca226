import { toKey } from "./block-key.ts";
import type { BlockEntry, FileEntry } from "./file-entry.ts";
import type { IndexDatabase } from "./index-database.ts";
import { tagMark, toSearchText } from "./search-text.ts";
import { blockChecksum, edgesChecksum, recordsChecksum } from "./stored-block.ts";

/** Adds what source files hold to an index, row by row, within a transaction of the caller's. */
export interface ContentWriter {
  /** Adds a file and all in it. `numberOf` gives each block the number of its id. */
  add(entry: FileEntry, numberOf: (block: BlockEntry) => number): void;
  /** Adds the same to a file that is there, and empty. */
  fill(file: number, entry: FileEntry, numberOf: (block: BlockEntry) => number): void;
  /** Writes the words of all blocks added since the last call. */
  flushSearch(): void;
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
  let number = nextNumber;
  let unsearched: { readonly key: number; readonly block: BlockEntry }[] = [];
  const marks = new Map<string, string>();

  const markOf = (tag: string): string => {
    let mark = marks.get(tag);
    if (mark === undefined) {
      mark = tagMark(tag);
      marks.set(tag, mark);
    }
    return mark;
  };

  const addBlock = (
    block: BlockEntry,
    { file, position, n }: { readonly file: number; readonly position: number; readonly n: number },
  ): void => {
    const { kind, base, title, content, data, edges } = block;
    const key = toKey(block.classCode, number);
    number += 1;
    database.run(
      `INSERT INTO blocks (
         key, file, position, kind, base, n, title, content, data, checksum, edges, edges_checksum
       ) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
      ...[key, file, position, kind, base, n, title, content, data, blockChecksum(block)],
      ...[edges, edgesChecksum(edges)],
    );
    for (const target of block.refs) {
      database.run("INSERT INTO refs (target, key) VALUES (?, ?)", target, key);
    }
    unsearched.push({ key, block });
    onBlock(block);
  };

  const writer: ContentWriter = {
    add(entry, numberOf) {
      const { path, hash, guidelines, guidelineCount, diagnostics } = entry;
      database.run(
        `INSERT INTO files (path, hash, guidelines, guideline_count, diagnostics, checksum)
         VALUES (?, ?, ?, ?, ?, ?)`,
        ...[path, hash, guidelines, guidelineCount, diagnostics, recordsChecksum(guidelines, diagnostics)],
      );
      const file = database.get<[number]>("SELECT last_insert_rowid()")?.[0] ?? 0;
      writer.fill(file, entry, numberOf);
    },
    fill(file, entry, numberOf) {
      for (const feature of entry.features) {
        database.run("INSERT INTO features (feature, file) VALUES (?, ?)", feature, file);
      }
      for (const [position, block] of entry.blocks.entries()) {
        addBlock(block, { file, position, n: numberOf(block) });
      }
    },
    flushSearch() {
      // FTS5 writes out a segment whenever a key is lower than the one before it.
      unsearched.sort((a, b) => a.key - b.key);
      for (const { key, block } of unsearched) {
        const body = block.summary === "" ? block.content : `${block.summary}\n${block.content}`;
        const tags = block.tags.join(" ");
        database.run(
          "INSERT INTO search (rowid, title, body, tags, marks) VALUES (?, ?, ?, ?, ?)",
          ...[key, toSearchText(block.title), toSearchText(body)],
          ...[toSearchText(tags), block.tags.map(markOf).join(" ")],
        );
      }
      unsearched = [];
    },
    nextNumber: () => number,
  };
  return writer;
}
