import { join } from "node:path";
import { incrementalVacuum, openStore, type StoreDefinition } from "../../../sqlite/open-store.ts";
import { progressTable } from "../../../sqlite/progress.ts";
import { type Database, pragma } from "../../../sqlite/statements.ts";

/** A larger file is not rewritten: rewriting this many bytes takes some tenths of a second. */
const maxRewrittenBytes = 33_554_432;
const maxJournalBytes = 16_777_216;

/**
 * A process adds a generation when it begins to write. `events` counts the events of a stream on disk; `last` is its
 * highest index, which pruning does not change. The ids of batches ascend, so the oldest rows of all streams come first.
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

/** The ids of streams begin at the current time, so that those of a recreated file differ from those that readers know. */
const laterIds = "INSERT INTO sqlite_sequence (name, seq) VALUES ('streams', unixepoch());";

/** Counts the bytes of events in a database that also holds other tables. */
const countedBytes = `
CREATE TABLE event_bytes (bytes INTEGER NOT NULL) STRICT;
INSERT INTO event_bytes VALUES (0);
CREATE TRIGGER batches_added AFTER INSERT ON batches
BEGIN UPDATE event_bytes SET bytes = bytes + octet_length(new.data); END;
CREATE TRIGGER batches_changed AFTER UPDATE OF data ON batches
BEGIN UPDATE event_bytes SET bytes = bytes + octet_length(new.data) - octet_length(old.data); END;
CREATE TRIGGER batches_removed AFTER DELETE ON batches
BEGIN UPDATE event_bytes SET bytes = bytes - octet_length(old.data); END;
`;

const eventLog: StoreDefinition = {
  store: "The event log",
  applicationId: 0x6b697465, // "kite"
  create: schema + laterIds + progressTable,
  // Version 1 had the same tables; `decodeEvents` reads its rows of complete events.
  upgrades: ["", progressTable],
  hint: "Update kit, or name another folder in `engine`.",
  shrinks: true,
};

/** Opens or creates the event log of a folder, or its tables in a database; in memory without either. Throws like `openStore`. */
export function openEventsDatabase(where: string | Database | undefined): Database {
  const target = typeof where === "string" ? join(where, "events.db") : where;
  const shared = { ...eventLog, create: schema + countedBytes + progressTable };
  return openStore(typeof target === "object" ? shared : eventLog, target, (database) => {
    makeShrinkable(database);
    // Readers detect a lost tail by a gap in the indexes, so an fsync per flush has no benefit.
    database.exec("PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL;");
    database.exec(`PRAGMA journal_size_limit = ${maxJournalBytes}`);
    // From now on a wait for a lock would block the process, and the writer can retry later.
    database.exec("PRAGMA busy_timeout = 10");
  });
}

/**
 * Rewrites the file of an older kit, so that it can return free pages to the disk. A large file stays unchanged: its
 * readers must not wait, and SQLite reuses its free pages.
 */
function makeShrinkable(database: Database): void {
  if (database.isShared === true || pragma(database, "auto_vacuum") === incrementalVacuum) return;
  const pages = pragma(database, "page_count") - pragma(database, "freelist_count");
  if (pages * pragma(database, "page_size") > maxRewrittenBytes) return;
  try {
    database.exec(`PRAGMA busy_timeout = 0; PRAGMA auto_vacuum = ${incrementalVacuum}; VACUUM`);
  } catch {
    // Another process uses the file, or the disk has no room for a copy: the next start tries again.
  }
}
