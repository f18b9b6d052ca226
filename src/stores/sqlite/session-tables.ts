import { openStore, type StoreDefinition } from "../../sqlite/open-store.ts";
import { progressTable } from "../../sqlite/progress.ts";
import type { Database, Statement } from "../../sqlite/statements.ts";

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
 * The id of an entry combines its session's id and its position, `session << 24 | position`: with one integer as its key,
 * SQLite appends in three quarters of the time that two columns take. Session ids are never reused, so no entry can end up
 * in another session. `input` is set on the first entry of each input, and unique within a session. `at` is the time of
 * writing, in ms since 1970; that of the last entry is the session's last use.
 */
const entries = `
CREATE TABLE entries (id INTEGER PRIMARY KEY, data TEXT NOT NULL) STRICT;
CREATE TRIGGER entries_of_deleted_session AFTER DELETE ON sessions BEGIN
  DELETE FROM entries WHERE id > old.id << 24 AND id < (old.id + 1) << 24;
END;
`;

/** The largest position that fits into an entry's id. */
export const maxPosition: number = 2 ** 24 - 1;

/** Version 1 had separate columns for session and position. */
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

/** The upgrade sets the last use of existing sessions to now. */
const touchedNow = `
UPDATE entries SET at = CAST(unixepoch('subsec') * 1000 AS INTEGER) WHERE id IN (
  SELECT (SELECT max(id) FROM entries WHERE id > s.id << 24 AND id < (s.id + 1) << 24) FROM sessions s
);
`;

/** The highest claimed fence of each instance; appends with a lower one are refused. */
const fences = `
CREATE TABLE fences (
  agent TEXT NOT NULL,
  instance_id TEXT NOT NULL,
  fence INTEGER NOT NULL,
  PRIMARY KEY (agent, instance_id)
) STRICT, WITHOUT ROWID;
`;

/** Parts of prompts by digest. `at` is the time of the last use, in ms since 1970. */
const texts = `
CREATE TABLE texts (name TEXT PRIMARY KEY, text TEXT NOT NULL, at INTEGER NOT NULL) STRICT, WITHOUT ROWID;
`;

/** The workspaces of sessions: a manifest each, and the pieces of their files by digest. */
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
  create: sessions + entries + inputs + times + fences + texts + workspaces + progressTable,
  upgrades: [joinedKeys, inputs, times + touchedNow, fences, texts, workspaces, progressTable],
  hint: "Update kit, or name another file in `store`.",
  shrinks: true,
};

/** Opens or creates the session tables in a file or an open database. Throws like `openStore`. */
export function openDatabase(where: string | Database, durability: "normal" | "full"): Database {
  return openStore(sessionStore, where, (database) => {
    const synchronous = durability === "full" ? "FULL" : "NORMAL";
    database.exec(`PRAGMA journal_mode = WAL; PRAGMA synchronous = ${synchronous};`);
    // From here on `LockedWrites` waits for locks without blocking the process.
    database.exec("PRAGMA busy_timeout = 0;");
  });
}

/** The prepared statements of a session store. */
export interface SessionStatements {
  readonly find: Statement;
  readonly create: Statement;
  readonly insert: Statement;
  /** Returns rows as arrays. */
  readonly read: Statement;
  readonly list: Statement;
  readonly listOldest: Statement;
  readonly listNewest: Statement;
  readonly delete: Statement;
  readonly deleteUntouched: Statement;
  readonly claim: Statement;
  readonly fence: Statement;
  /** Removes the fence of an instance without sessions. */
  readonly forgetFence: Statement;
  /** Removes the fence of a run whose agents have no sessions. */
  readonly forgetRun: Statement;
  readonly keepText: Statement;
  readonly readText: Statement;
  readonly pruneTexts: Statement;
}

export function prepareStatements(database: Database): SessionStatements {
  const prepare = (sql: string): Statement => database.prepare(sql);
  const statements = {
    find: prepare(
      `SELECT id, ${position("sessions.id")} AS position
         FROM sessions WHERE agent = ? AND instance_id = ? AND session = ?`,
    ),
    create: prepare(
      "INSERT INTO sessions (agent, instance_id, session, created_at, parent_id) VALUES (?, ?, ?, ?, ?)",
    ),
    insert: prepare(
      "INSERT INTO entries (id, data, input, at) SELECT ?1 << 24 | ?2, ?3, ?4, ?5 WHERE EXISTS (SELECT 1 FROM sessions WHERE id = ?1)",
    ),
    read: prepare("SELECT data FROM entries WHERE id > ?1 << 24 | ?2 AND id < (?1 + 1) << 24 ORDER BY id"),
    list: prepare(
      `SELECT s.agent, s.instance_id, s.session, s.created_at, p.agent AS parent_agent,
                p.instance_id AS parent_instance_id, p.session AS parent_session,
                ${position("s.id")} AS position
         FROM sessions s LEFT JOIN sessions p ON p.id = s.parent_id
         WHERE s.agent = ?1 AND (?2 IS NULL OR s.instance_id = ?2) AND (?3 IS NULL OR s.session = ?3) ORDER BY s.id`,
    ),
    listOldest: prepare(listSessions("s.id > ?1", "ASC")),
    listNewest: prepare(listSessions("s.id < ?1", "DESC")),
    delete: prepare("DELETE FROM sessions WHERE agent = ? AND instance_id = ? AND session = ?"),
    claim: prepare(
      `INSERT INTO fences (agent, instance_id, fence) VALUES (?, ?, ?)
         ON CONFLICT (agent, instance_id) DO UPDATE SET fence = max(fence, excluded.fence)`,
    ),
    fence: prepare("SELECT fence FROM fences WHERE agent = ? AND instance_id = ?"),
    forgetFence: prepare(
      `DELETE FROM fences WHERE agent = ?1 AND instance_id = ?2
         AND NOT EXISTS (SELECT 1 FROM sessions WHERE agent = ?1 AND instance_id = ?2)`,
    ),
    forgetRun: prepare(
      `DELETE FROM fences WHERE agent = '' AND instance_id = ?
         AND NOT EXISTS (SELECT 1 FROM sessions AS s WHERE s.instance_id = fences.instance_id)`,
    ),
    keepText: prepare(
      "INSERT INTO texts (name, text, at) VALUES (?, ?, ?) ON CONFLICT (name) DO UPDATE SET at = excluded.at",
    ),
    readText: prepare("SELECT text FROM texts WHERE name = ?"),
    pruneTexts: prepare("DELETE FROM texts WHERE at < ?"),
    deleteUntouched: prepare(
      `WITH RECURSIVE below (id) AS (
           SELECT id FROM sessions WHERE agent = ?1 AND instance_id = ?2 AND session = ?3
           UNION ALL SELECT s.id FROM sessions s JOIN below ON s.parent_id = below.id
         )
         DELETE FROM sessions WHERE agent = ?1 AND instance_id = ?2 AND session = ?3
           AND NOT EXISTS (SELECT 1 FROM below WHERE ${touched("below.id")} >= ?4)`,
    ),
  };
  statements.read.setReturnArrays(true);
  return statements;
}

function listSessions(condition: string, order: "ASC" | "DESC"): string {
  return `SELECT s.id, s.agent, s.instance_id, s.session, s.created_at, p.agent AS parent_agent,
          p.instance_id AS parent_instance_id, p.session AS parent_session,
          ${position("s.id")} AS position, ${touched("s.id")} AS touched_at
   FROM sessions s LEFT JOIN sessions p ON p.id = s.parent_id
   WHERE ${condition} AND (?3 IS NULL OR s.agent = ?3) AND (?4 IS NULL OR s.instance_id = ?4)
   ORDER BY s.id ${order} LIMIT ?2`;
}

/** SQL for the number of entries of a session. */
function position(session: string): string {
  return `coalesce((SELECT max(id) & ${maxPosition} FROM entries WHERE id > ${session} << 24 AND id < (${session} + 1) << 24), 0)`;
}

/** SQL for the time of a session's last entry. */
function touched(session: string): string {
  return `(SELECT at FROM entries WHERE id > ${session} << 24 AND id < (${session} + 1) << 24 ORDER BY id DESC LIMIT 1)`;
}
