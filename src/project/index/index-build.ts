import { rmSync } from "node:fs";
import type { Link } from "../aliases.ts";
import { createBlockNumbering } from "./block-numbering.ts";
import { addToClasses, type ClassCounts, countBlock } from "./class-counts.ts";
import { createContentWriter } from "./content-writer.ts";
import type { FileEntry } from "./file-entry.ts";
import { openDatabase } from "./index-database.ts";
import { saveLinks } from "./link-store.ts";
import { writeMeta } from "./meta.ts";
import { numberBlocks } from "./number-blocks.ts";
import { applicationId, indexes, schemaVersion, tables } from "./schema.ts";
import { saveTreeRows, type TreeRow } from "./tree-store.ts";

/** Blocks whose words are written together, in the order of their keys: each time makes a segment. */
const minSearchBatch = 10_000;

/** What an index holds beside its files. */
export interface BuildRest {
  readonly tree: readonly TreeRow[];
  readonly links: readonly (readonly [path: string, link: Link])[];
  readonly fingerprint: string;
  readonly outerRules: string;
}

/** A new index in the making, in a file that nobody else reads. */
export interface IndexBuild {
  /** Adds files, in the order of their paths over all calls. */
  put(entries: readonly FileEntry[]): void;
  /** Completes the file and closes it. */
  finish(rest: BuildRest): void;
  /** Closes and deletes the file. */
  abandon(): void;
}

/**
 * Starts an index at a path where nothing of value lies. It is written without a journal and
 * without waiting for the disk: an unfinished one is never used.
 */
export function createIndexBuild(file: string): IndexBuild {
  removeDatabase(file);
  const database = openDatabase(file, { busyTimeoutMs: 0 });
  database.exec("PRAGMA page_size = 8192; PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF");
  database.exec("PRAGMA locking_mode = EXCLUSIVE; PRAGMA cache_size = -24576; PRAGMA temp_store = MEMORY");
  database.exec(tables);
  configureSearch({ automerge: 0, hashsize: 64 * 1024 * 1024 });
  database.exec("BEGIN");

  const counts: ClassCounts = new Map();
  const numbering = createBlockNumbering();
  let guidelines = 0;
  const content = createContentWriter(database, {
    nextNumber: 0,
    onBlock: ({ classCode }) => countBlock(counts, classCode, 1),
  });

  /** Settings of FTS5; its own defaults are for a few rows at a time. */
  function configureSearch(settings: { readonly automerge: number; readonly hashsize: number }): void {
    for (const [name, value] of Object.entries(settings)) {
      database.exec(`INSERT INTO search (search, rank) VALUES ('${name}', ${value})`);
    }
  }

  return {
    put(entries) {
      for (const entry of entries) {
        guidelines += entry.guidelineCount;
        content.add(entry, numbering.next);
      }
      content.flushSearch(minSearchBatch);
    },
    finish({ tree, links, fingerprint, outerRules }) {
      content.flushSearch();
      database.exec(indexes);
      for (const base of numbering.unsettled()) numberBlocks(database, base);
      addToClasses(database, counts);
      saveTreeRows(database, tree);
      saveLinks(database, links);
      writeMeta(database, "fingerprint", fingerprint);
      writeMeta(database, "outer_rules", outerRules);
      writeMeta(database, "next_number", content.nextNumber());
      writeMeta(database, "guidelines", guidelines);
      // A random start tells the generations of one index from those of another.
      writeMeta(database, "generation", Math.floor(Math.random() * 2 ** 40));
      database.exec(
        `PRAGMA application_id = ${applicationId}; PRAGMA user_version = ${schemaVersion}; COMMIT`,
      );
      configureSearch({ automerge: 4, hashsize: 1024 * 1024 });
      database.exec("PRAGMA journal_mode = WAL");
      database.close();
    },
    abandon() {
      database.close();
      removeDatabase(file);
    },
  };
}

/** Removes a database and the files that SQLite keeps beside it. */
export function removeDatabase(file: string): void {
  for (const suffix of ["", "-journal", "-wal", "-shm"]) rmSync(file + suffix, { force: true });
}
