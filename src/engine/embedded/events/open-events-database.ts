import { join } from "node:path";
import type { DatabaseSync } from "node:sqlite";
import { incrementalVacuum, openStore, type StoreDefinition } from "../../../sqlite/open-store.ts";
import { pragma } from "../../../sqlite/statements.ts";

/** A file with more rows is not rewritten: it takes some tenths of a second for so many bytes. */
const maxRewrittenBytes = 33_554_432;
const maxJournalBytes = 16_777_216;

/**
 * A generation is one opening for writing. `events` counts the events of a stream on disk; `last` is its highest index,
 * which stays when its events are pruned. Batches have ascending ids, so the oldest rows of all streams come first.
 */
const schema = `
CREATE TABLE generations (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  fence INTEGER NOT NULL,
  clean INTEGER NOT NULL DEFAULT 0
) STRICT;
CREATE TABLE streams (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  name TEXT NOT NULL UNIQUE,
  generation INTEGER NOT NULL,
  last INTEGER NOT NULL,
  events INTEGER NOT NULL DEFAULT 0,
  ended INTEGER NOT NULL DEFAULT 0
) STRICT;
CREATE TABLE batches (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  stream_id INTEGER NOT NULL,
  first INTEGER NOT NULL,
  last INTEGER NOT NULL,
  events INTEGER NOT NULL,
  written_ms INTEGER NOT NULL,
  data TEXT NOT NULL
) STRICT;
CREATE INDEX batches_by_stream ON batches (stream_id, last);
`;

const eventLog: StoreDefinition = {
  store: "The event log",
  applicationId: 0x6b697465, // "kite"
  create: schema,
  // Version 1 had the same tables; its rows, of whole events, are read as they are.
  upgrades: [""],
  hint: "Update kit, or name another folder in `engine`.",
  shrinks: true,
};

/** Opens, or creates, the event log of a folder; in memory without one. Throws like `openStore`. */
export function openEventsDatabase(folder: string | undefined): DatabaseSync {
  return openStore(eventLog, folder && join(folder, "events.db"), (database) => {
    makeShrinkable(database);
    // A gap in the indexes tells readers of a lost tail, so an fsync for each flush buys nothing.
    database.exec("PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL;");
    database.exec(`PRAGMA journal_size_limit = ${maxJournalBytes}`);
    // From here on waiting stops the process, and the writer can write later.
    database.exec("PRAGMA busy_timeout = 10");
  });
}

/**
 * Rewrites the file of an older kit, so that it returns freed pages to the disk. A large file is left as it is: its readers
 * must not wait, and SQLite uses its free pages first.
 */
function makeShrinkable(database: DatabaseSync): void {
  if (pragma(database, "auto_vacuum") === incrementalVacuum) return;
  const pages = pragma(database, "page_count") - pragma(database, "freelist_count");
  if (pages * pragma(database, "page_size") > maxRewrittenBytes) return;
  try {
    database.exec(`PRAGMA busy_timeout = 0; PRAGMA auto_vacuum = ${incrementalVacuum}; VACUUM`);
  } catch {
    // Another process has it open, or the disk has no room for a second copy: the next start tries again.
  }
}
