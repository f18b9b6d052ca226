import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { KitError } from "../../../base/kit-error.ts";
import { databaseOpenError, refuseEmptyDatabase } from "../../../files/database-file.ts";

/** Marks the file as one of kit's event logs ("kite"). */
const applicationId = 0x6b697465;
const schemaVersion = 2;
/** As SQLite numbers the ways of `auto_vacuum`. */
const incremental = 2;
/** Takes some tenths of a second. */
const mostRewrittenBytes = 33_554_432;
const mostJournalBytes = 16_777_216;

/*
 * A generation is one opening for writing. `events` counts what a stream has on disk; `last` is its
 * highest index, which stays when its events are pruned. Batches carry ascending ids, so the oldest
 * rows of all streams stand first.
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
PRAGMA application_id = ${applicationId};
PRAGMA user_version = ${schemaVersion};
`;

/**
 * Opens, or creates, the event log of a folder; without one, a log in memory. Throws `unavailable` for
 * a file that is no event log, or one that a newer kit has written.
 */
export function openEventsDatabase(folder: string | undefined): DatabaseSync {
  const place = { store: "The event log", file: folder && join(folder, "events.db") };
  let database: DatabaseSync | undefined;
  try {
    refuseEmptyDatabase(place);
    database = new DatabaseSync(place.file ?? ":memory:", { timeout: 5_000 });
    migrate(database);
    shrinkable(database);
    // A lost tail of events is told by a gap in the indexes, so an fsync for each flush buys nothing.
    database.exec("PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL;");
    database.exec(`PRAGMA journal_size_limit = ${mostJournalBytes}`);
    // From here on waiting holds up the process, and what cannot be written now can be written later.
    database.exec("PRAGMA busy_timeout = 10");
    return database;
  } catch (error) {
    database?.close();
    throw databaseOpenError(place, error);
  }
}

/**
 * Has the file give back what is deleted from it, a little at a time. A file of an older kit has to be written anew for
 * that, which is done while it holds little: its readers must not wait for long. Until then it keeps its size, and uses
 * what is free in it first.
 */
function shrinkable(database: DatabaseSync): void {
  const pragma = (name: string): number => Number(database.prepare(`PRAGMA ${name}`).get()?.[name]);
  if (pragma("auto_vacuum") === incremental) return;
  const used = (pragma("page_count") - pragma("freelist_count")) * pragma("page_size");
  if (used > mostRewrittenBytes) return;
  try {
    database.exec(`PRAGMA busy_timeout = 0; PRAGMA auto_vacuum = ${incremental}; VACUUM`);
  } catch {
    // Another process has it open, or the disk has no room for a second copy: the next start tries again.
  }
}

function migrate(database: DatabaseSync): void {
  const pragma = (name: string): number => Number(database.prepare(`PRAGMA ${name}`).get()?.[name]);
  if (pragma("user_version") === schemaVersion && pragma("application_id") === applicationId) return;
  // Counts for a file that has no tables yet.
  database.exec(`PRAGMA auto_vacuum = ${incremental}`);
  database.exec("BEGIN IMMEDIATE");
  // Another process may have created the tables while this one waited for the lock.
  if (pragma("user_version") === 0 && pragma("application_id") === 0) database.exec(schema);
  // Version 1 had the same tables; its rows, of whole events, are read as they are.
  else if (pragma("user_version") === 1 && pragma("application_id") === applicationId)
    database.exec(`PRAGMA user_version = ${schemaVersion}`);
  database.exec("COMMIT");
  if (pragma("application_id") !== applicationId || pragma("user_version") > schemaVersion) {
    throw new KitError({
      code: "unavailable",
      message: "The event log was written by a newer kit, or by another program.",
      hint: "Update kit, or name another folder in `engine`.",
    });
  }
}
