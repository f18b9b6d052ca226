import { openStore, type StoreDefinition } from "../../sqlite/open-store.ts";
import type { Database } from "../../sqlite/statements.ts";

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
 * The id of an entry is the id of its session and its position in one number, `session << 24 | position`: SQLite appends to a
 * table with one integer as its key in three quarters of the time that two columns take. Session ids are never reused, so no
 * entry can end up in another session. `input` is set on the first entry of each input, and unique within a session. `at`
 * is the time of writing, in ms since 1970; that of the last entry tells when its session was touched.
 */
const entries = `
CREATE TABLE entries (id INTEGER PRIMARY KEY, data TEXT NOT NULL) STRICT;
CREATE TRIGGER entries_of_deleted_session AFTER DELETE ON sessions BEGIN
  DELETE FROM entries WHERE id > old.id << 24 AND id < (old.id + 1) << 24;
END;
`;

/** The largest position that fits into such an id. */
export const maxPosition: number = 2 ** 24 - 1;

/** Version 1 had a column each for session and position. */
const joinedKeys = `
ALTER TABLE entries RENAME TO entries_1;
${entries}
INSERT INTO entries (id, data) SELECT session_id << 24 | position, data FROM entries_1 ORDER BY session_id, position;
DROP TABLE entries_1;
`;

const inputs = `
ALTER TABLE entries ADD COLUMN input TEXT;
CREATE UNIQUE INDEX entries_by_input ON entries (id >> 24, input) WHERE input IS NOT NULL;
`;

const times = "ALTER TABLE entries ADD COLUMN at INTEGER;";

/** Sessions of an older kit count as touched when this one upgrades the file. */
const touchedNow = `
UPDATE entries SET at = CAST(unixepoch('subsec') * 1000 AS INTEGER) WHERE id IN (
  SELECT (SELECT max(id) FROM entries WHERE id > s.id << 24 AND id < (s.id + 1) << 24) FROM sessions s
);
`;

/** The highest fence that was claimed for an instance: appends with a lower one are refused. */
const fences = `
CREATE TABLE fences (
  agent TEXT NOT NULL,
  instance_id TEXT NOT NULL,
  fence INTEGER NOT NULL,
  PRIMARY KEY (agent, instance_id)
) STRICT, WITHOUT ROWID;
`;

/** Parts of prompts, each once, by a digest. `at` is when one was last used, in ms since 1970. */
const texts = `
CREATE TABLE texts (name TEXT PRIMARY KEY, text TEXT NOT NULL, at INTEGER NOT NULL) STRICT, WITHOUT ROWID;
`;

/** The workspaces of sessions: the manifest of each, and the content of its files in pieces, by their digests. */
const workspaces = `
CREATE TABLE workspaces (
  agent TEXT NOT NULL,
  instance_id TEXT NOT NULL,
  session TEXT NOT NULL,
  version INTEGER NOT NULL,
  manifest TEXT NOT NULL,
  PRIMARY KEY (agent, instance_id, session)
) STRICT, WITHOUT ROWID;
CREATE TABLE workspace_pieces (
  id INTEGER PRIMARY KEY,
  agent TEXT NOT NULL,
  instance_id TEXT NOT NULL,
  session TEXT NOT NULL,
  name TEXT NOT NULL,
  data BLOB NOT NULL,
  UNIQUE (agent, instance_id, session, name)
) STRICT;
`;

const sessionStore: StoreDefinition = {
  store: "The session store",
  applicationId: 0x6b697473, // "kits"
  create: sessions + entries + inputs + times + fences + texts + workspaces,
  upgrades: [joinedKeys, inputs, times + touchedNow, fences, texts, workspaces],
  hint: "Update kit, or name another file in `store`.",
  shrinks: true,
};

/** Opens, or creates, a session database, or its tables in a database. Throws like `openStore`. */
export function openDatabase(where: string | Database, durability: "normal" | "full"): Database {
  return openStore(sessionStore, where, (database) => {
    const synchronous = durability === "full" ? "FULL" : "NORMAL";
    database.exec(`PRAGMA journal_mode = WAL; PRAGMA synchronous = ${synchronous};`);
    // From here on the store waits for locks, which does not stop the process.
    database.exec("PRAGMA busy_timeout = 0;");
  });
}
