import type { Connection } from "../../sqlite/statements.ts";
import type { Folder, Link } from "../scan/tree.ts";
import {
  type BlockEntry,
  classIdOf,
  contentAt,
  type EdgeColumns,
  firstNumberOf,
  numberBlocks,
  readClasses,
  refsOf,
  titleAt,
  toEdges,
  toKey,
} from "./block-row.ts";
import { type DatesUpdate, saveDates } from "./date-rows.ts";
import { type Meta, readMeta, writeMeta } from "./open-index.ts";
import { isTurnOfAnother } from "./write-turn.ts";

/** The rows of one source file. */
export interface FileEntry {
  readonly path: string;
  /** SHA-256 of the bytes, base64url; empty for an unreadable file. */
  readonly hash: string;
  /** JSON of the file's other names; empty for none. */
  readonly aliases: string;
  /** JSON of the file's `GuidelineRecord`s; empty for none. */
  readonly guidelines: string;
  readonly guidelineCount: number;
  /** JSON of the file's `StoredDiagnostics`; empty for none. */
  readonly diagnostics: string;
  /** In the order of the file. */
  readonly blocks: readonly BlockEntry[];
  readonly features: readonly string[];
}

/** A change of the index, written in one transaction. Plain data, because another thread can write it. */
export interface IndexBatch {
  /** The generation that the change was made for. */
  readonly generation: number;
  readonly files?: readonly FileEntry[];
  readonly removedFiles?: readonly string[];
  readonly folders?: readonly Folder[];
  readonly removedFolders?: readonly string[];
  /** All links, in place of those known. */
  readonly links?: readonly (readonly [path: string, link: Link])[];
  readonly dates?: DatesUpdate;
  readonly meta?: { readonly [Name in keyof Meta]?: Meta[Name] | undefined };
  /** The turn of the pass that writes, where it has one. */
  readonly turn?: string | undefined;
  /** Whether readers see a difference. Removed files and changed dates count without it. */
  readonly isVisible: boolean;
}

export type WriteResult =
  | { readonly kind: "written"; readonly generation: number; readonly removed: number }
  /** Another process has written since `generation`, or has the turn to write. */
  | { readonly kind: "outdated" };

/** Writes a batch. Throws SQLite's errors, including SQLITE_BUSY; the index is then unchanged. */
export function writeBatch(database: Connection, batch: IndexBatch): WriteResult {
  return database.transaction(() => {
    if (readMeta(database, "generation") !== batch.generation) return { kind: "outdated" };
    if (isTurnOfAnother(database, batch.turn)) return { kind: "outdated" };
    const removed = writeFiles(database, batch);
    const haveDatesChanged = writeRest(database, batch);
    const isVisible = batch.isVisible || removed > 0 || haveDatesChanged;
    const generation = batch.generation + (isVisible ? 1 : 0);
    writeMeta(database, "generation", generation);
    return { kind: "written", generation, removed };
  });
}

/** Returns the number of removed files. */
function writeFiles(database: Connection, { files = [], removedFiles = [] }: IndexBatch): number {
  if (files.length + removedFiles.length === 0) return 0;
  const content = new ContentWriter(database);
  for (const entry of files) content.put(entry);
  const removed = removedFiles.filter((path) => content.remove(path)).length;
  content.finish();
  return removed;
}

/** Returns whether dates have changed. */
function writeRest(database: Connection, batch: IndexBatch): boolean {
  for (const path of batch.removedFolders ?? []) database.run("DELETE FROM folders WHERE path = ?", path);
  for (const { path, folders, files, sources, stamps } of batch.folders ?? []) {
    database.run(
      "INSERT OR REPLACE INTO folders (path, folders, files, sources, stamps) VALUES (?, ?, ?, ?, ?)",
      ...[path, folders, files, sources, JSON.stringify(stamps)],
    );
  }
  if (batch.links !== undefined) {
    database.run("DELETE FROM links");
    for (const [path, { kind, target }] of batch.links)
      database.run("INSERT INTO links (path, kind, target) VALUES (?, ?, ?)", path, kind, target);
  }
  for (const [name, value] of Object.entries(batch.meta ?? {}) as [keyof Meta, never][])
    writeMeta(database, name, value);
  return batch.dates !== undefined && saveDates(database, batch.dates);
}

/** Pages of 4 kB that a small transaction merges: some milliseconds. */
const mergedPages = 32;
const maxMergingBlocks = 500;

/** Changes the content of source files, within a transaction of the caller. Call `finish` at the end. */
class ContentWriter {
  readonly #database: Connection;
  readonly #classes: ClassCounts;
  readonly #touchedBases = new Set<string>();
  readonly #added: { readonly key: number; readonly block: BlockEntry }[] = [];
  #number: number;

  constructor(database: Connection) {
    this.#database = database;
    this.#classes = createClassCounts(database);
    this.#number = readMeta(database, "next_number") ?? 0;
  }

  /** Adds a file, or replaces its rows. */
  put({ path, hash, aliases, guidelineCount, diagnostics, guidelines, blocks, features }: FileEntry): void {
    const database = this.#database;
    const fileId = this.#fileIdOf(path);
    if (fileId !== undefined) this.#empty(fileId);
    const [file = 0] =
      database.get<[number]>(
        `INSERT INTO files (path, hash, aliases, guideline_count, diagnostics, guidelines)
         VALUES (?, ?, ?, ?, ?, ?)
         ON CONFLICT (path) DO UPDATE SET hash = excluded.hash, aliases = excluded.aliases,
           guideline_count = excluded.guideline_count, diagnostics = excluded.diagnostics,
           guidelines = excluded.guidelines
         RETURNING id`,
        ...[path, hash, aliases, guidelineCount, diagnostics, guidelines],
      ) ?? [];
    for (const feature of features)
      database.run("INSERT INTO features (feature, file) VALUES (?, ?)", feature, file);
    const insertBlock = database.statement(insertBlockSql);
    const insertRef = database.statement("INSERT INTO refs (target, key) VALUES (?, ?)");
    for (const [position, block] of blocks.entries()) {
      const { idKind, base, row } = block;
      const key = toKey(this.#classes.add(block.class), this.#number);
      this.#number += 1;
      insertBlock.run(key, file, position, idKind, base, firstNumberOf(idKind), ...row);
      for (const target of block.refs) insertRef.run(target, key);
      this.#touchedBases.add(base);
      this.#added.push({ key, block });
    }
  }

  /** Returns whether the path was known. */
  remove(path: string): boolean {
    const file = this.#fileIdOf(path);
    if (file === undefined) return false;
    this.#empty(file);
    this.#database.run("DELETE FROM files WHERE id = ?", file);
    return true;
  }

  /** Writes what depends on all changes together: full text, id numbers, counts. */
  finish(): void {
    const database = this.#database;
    const insertSearch = database.statement(
      "INSERT INTO search (rowid, title, body, tags, marks) VALUES (?, ?, ?, ?, ?)",
    );
    // FTS5 writes out a segment whenever a key is lower than the one before it.
    this.#added.sort((a, b) => a.key - b.key);
    for (const { key, block } of this.#added) {
      const [ownTitle, ownBody, tags, marks] = block.search;
      const title = ownTitle || (block.row[titleAt] ?? "");
      insertSearch.run(key, title, ownBody || (block.row[contentAt] ?? ""), tags, marks);
    }
    // FTS5 stores the additions of each transaction as a separate segment. Small transactions merge some segments, so that there
    // are few.
    if (this.#added.length < maxMergingBlocks)
      database.exec(`INSERT INTO search (search, rank) VALUES ('merge', ${mergedPages})`);
    numberBlocks(database, this.#touchedBases);
    this.#classes.save();
    writeMeta(database, "next_number", this.#number);
  }

  #fileIdOf(path: string): number | undefined {
    return this.#database.get<[number]>("SELECT id FROM files WHERE path = ?", path)?.[0];
  }

  /** Deletes the content of a file, and keeps the row of the file itself. */
  #empty(file: number): void {
    const database = this.#database;
    const blocks = database.all<[key: number, base: string, ...EdgeColumns]>(
      "SELECT key, base, feature, links, mentions, aliases FROM blocks WHERE file = ?",
      file,
    );
    for (const [key, base, ...edges] of blocks) {
      this.#touchedBases.add(base);
      this.#classes.remove(key);
      for (const target of refsOf(toEdges(edges)))
        database.run("DELETE FROM refs WHERE target = ? AND key = ?", target, key);
      database.run("DELETE FROM search WHERE rowid = ?", key);
      database.run("DELETE FROM blocks WHERE key = ?", key);
    }
    database.run("DELETE FROM features WHERE file = ?", file);
  }
}

const insertBlockSql = `INSERT INTO blocks (
  key, file, position, id_kind, base, n, feature, links, mentions, aliases, start_line, end_line,
  created_at, updated_at, title, summary, tags, metadata, content
) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`;

interface ClassCounts {
  /** Counts one block more; returns the id of its class. */
  add(values: BlockEntry["class"]): number;
  /** Counts one block less; `key` is the block's key. */
  remove(key: number): void;
  save(): void;
}

/** The classes of an index, with the blocks that a transaction adds and removes. */
function createClassCounts(database: Connection): ClassCounts {
  const nameOf = (values: BlockEntry["class"]): string => values.join(" ");
  const ids = new Map<string, number>();
  for (const { id, framework, spec_type, lifecycle, priority } of readClasses(database).values())
    ids.set(nameOf([framework, spec_type, lifecycle, priority]), id);
  const changes = new Map<number, number>();
  const change = (id: number, difference: 1 | -1): number => {
    changes.set(id, (changes.get(id) ?? 0) + difference);
    return id;
  };
  return {
    add(values) {
      const name = nameOf(values);
      let id = ids.get(name);
      if (id === undefined) {
        [id = 0] =
          database.get<[number]>(
            `INSERT INTO classes (framework, spec_type, lifecycle, priority, blocks) VALUES (?, ?, ?, ?, 0)
             RETURNING id`,
            ...values,
          ) ?? [];
        ids.set(name, id);
      }
      return change(id, 1);
    },
    remove(key) {
      change(classIdOf(key), -1);
    },
    save() {
      for (const [id, difference] of changes)
        database.run("UPDATE classes SET blocks = blocks + ? WHERE id = ?", difference, id);
    },
  };
}
