import type { DatabaseSync } from "node:sqlite";
import { KitError } from "../../base/kit-error.ts";
import { databaseOpenError, refuseEmptyDatabase } from "../../files/database-file.ts";

/** Marks the file as one of kit's session stores ("kits"). */
const applicationId = 0x6b697473;
const schemaVersion = 4;
/** As SQLite numbers the ways of `auto_vacuum`. */
const incremental = 2;

const sessions = `
CREATE TABLE sessions (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  agent TEXT NOT NULL,
  instance_id TEXT NOT NULL,
  session TEXT NOT NULL,
  created_at TEXT NOT NULL,
  parent_id INTEGER REFERENCES sessions (id) ON DELETE CASCADE,
  UNIQUE (agent, instance_id, session)
) STRICT;
CREATE INDEX sessions_by_parent ON sessions (parent_id) WHERE parent_id IS NOT NULL;
`;

/**
 * An entry's id is its session's id and its position in one number, `session << 24 | position`: SQLite
 * appends to a table with one integer as its key in three quarters of the time that two columns take.
 * Ids of sessions are never used again, so that no entry can come under another session. `input` stands in the
 * first of the entries that brought that input in, and once in a session. `at` is when it was written, in ms since 1970:
 * that of the last one says when its session was touched.
 */
const entries = `
CREATE TABLE entries (id INTEGER PRIMARY KEY, data TEXT NOT NULL, input TEXT, at INTEGER) STRICT;
CREATE UNIQUE INDEX entries_by_input ON entries (id >> 24, input) WHERE input IS NOT NULL;
CREATE TRIGGER entries_of_deleted_session AFTER DELETE ON sessions BEGIN
  DELETE FROM entries WHERE id > old.id << 24 AND id < (old.id + 1) << 24;
END;
`;

/** The last position that such an id has room for. */
export const maxPosition: number = 2 ** 24 - 1;

const mark = `PRAGMA application_id = ${applicationId}; PRAGMA user_version = ${schemaVersion};`;

/** What an older kit wrote counts as touched on the day on which this one finds it. */
const touchedNow = `
UPDATE entries SET at = CAST(unixepoch('subsec') * 1000 AS INTEGER) WHERE id IN (
  SELECT (SELECT max(id) FROM entries WHERE id > s.id << 24 AND id < (s.id + 1) << 24) FROM sessions s
);
`;

/** Version 1 had a column each for session and position. */
const fromVersion1 = `
ALTER TABLE entries RENAME TO entries_1;
${entries}
INSERT INTO entries (id, data) SELECT session_id << 24 | position, data FROM entries_1 ORDER BY session_id, position;
DROP TABLE entries_1;
${touchedNow}
${mark}
`;

const fromVersion2 = `
ALTER TABLE entries ADD COLUMN input TEXT;
CREATE UNIQUE INDEX entries_by_input ON entries (id >> 24, input) WHERE input IS NOT NULL;
`;

const fromVersion3 = `
ALTER TABLE entries ADD COLUMN at INTEGER;
${touchedNow}
${mark}
`;

/**
 * Opens, or creates, a session database. Throws `unavailable` for a file that is none, or one that a
 * newer kit has written, and `store_unavailable` for one that cannot be opened now: sessions are never thrown away.
 */
export function openDatabase(file: string, durability: "normal" | "full"): DatabaseSync {
  // Not imported: a Node without this module could not even load the check that says so.
  const { DatabaseSync } = process.getBuiltinModule("node:sqlite");
  const place = { store: "The session store", file };
  refuseEmptyDatabase(place);
  let database: DatabaseSync | undefined;
  try {
    database = new DatabaseSync(file, { enableForeignKeyConstraints: true, timeout: 5_000 });
    // First whether the file is ours: changing its journal would change somebody else's database.
    migrate(database);
    database.exec(
      `PRAGMA journal_mode = WAL; PRAGMA synchronous = ${durability === "full" ? "FULL" : "NORMAL"};`,
    );
    // From now on waiting is the store's: it does not stop the process meanwhile.
    database.exec("PRAGMA busy_timeout = 0;");
    return database;
  } catch (error) {
    database?.close();
    throw databaseOpenError(place, error);
  }
}

function migrate(database: DatabaseSync): void {
  const pragma = (name: string): number => Number(database.prepare(`PRAGMA ${name}`).get()?.[name]);
  if (pragma("user_version") === schemaVersion && pragma("application_id") === applicationId) return;
  // Counts for a file that has no tables yet: it gives back what is deleted from it.
  database.exec(`PRAGMA auto_vacuum = ${incremental}`);
  database.exec("BEGIN IMMEDIATE");
  // Another process may have created the tables while this one waited for the lock.
  if (pragma("user_version") === 0 && pragma("application_id") === 0) {
    database.exec(sessions + entries + mark);
  } else if (pragma("user_version") === 1 && pragma("application_id") === applicationId) {
    database.exec(fromVersion1);
  } else if (pragma("user_version") === 2 && pragma("application_id") === applicationId) {
    database.exec(fromVersion2 + fromVersion3);
  } else if (pragma("user_version") === 3 && pragma("application_id") === applicationId) {
    database.exec(fromVersion3);
  }
  database.exec("COMMIT");
  if (pragma("application_id") !== applicationId || pragma("user_version") > schemaVersion) {
    throw new KitError({
      code: "unavailable",
      message: "The session store was written by a newer kit, or by another program.",
      hint: "Update kit, or name another file in `store`.",
    });
  }
}
