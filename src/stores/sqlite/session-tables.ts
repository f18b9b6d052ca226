import { KitError } from "../../base/kit-error.ts";
import { openStore, type StoreDefinition } from "../../sqlite/open-store.ts";
import { progressTable } from "../../sqlite/progress.ts";
import type { Database, Statement } from "../../sqlite/statements.ts";
import { conflict } from "../session-row.ts";

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

export function storeFullError(): KitError {
  return new KitError({
    code: "conflict",
    message: `The session is full: it has ${maxPosition} entries.`,
    hint: "Continue in a new session.",
  });
}

/** Returns the error of an insert: a conflict if a constraint refused it. */
export function orConflict(error: unknown): unknown {
  return error instanceof Error && error.message.includes("constraint") ? conflict(error) : error;
}

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

/**
 * The columns that lists show of a session. `tokens` and `cost` of an entry are the sums up to it, in the row that an append writes anyway;
 * null if they are unknown. The row of the session changes only with its title or state, and `used_at` (ms) at most once a
 * second: with each append it would cost two thirds more.
 */
const summaries = `
ALTER TABLE sessions ADD COLUMN title TEXT;
ALTER TABLE sessions ADD COLUMN state TEXT NOT NULL DEFAULT 'idle';
ALTER TABLE sessions ADD COLUMN error TEXT;
ALTER TABLE sessions ADD COLUMN used_at INTEGER NOT NULL DEFAULT 0;
ALTER TABLE entries ADD COLUMN tokens INTEGER;
ALTER TABLE entries ADD COLUMN cost REAL;
CREATE INDEX sessions_by_use ON sessions (used_at);
CREATE INDEX sessions_by_state ON sessions (state) WHERE state <> 'idle';
`;

/** The upgrade reads the last entry of each session, and the first ones of the newest 10,000 sessions, for their titles. */
const filledSummaries = `
UPDATE sessions AS s SET used_at = coalesce(
  (SELECT at FROM entries WHERE id > s.id << 24 AND id < (s.id + 1) << 24 ORDER BY id DESC LIMIT 1), 0);
UPDATE sessions AS s SET title = (
  SELECT nullif(substr(trim(replace(replace(replace(json_extract(data, '$[4][0].text'), char(13), ' '), char(10), ' '), char(9), ' ')), 1, 80), '')
  FROM entries WHERE id > s.id << 24 AND id <= (s.id << 24) + 20 AND length(data) < 100000 AND json_valid(data)
    AND data LIKE '[2,"user",%' AND data NOT LIKE '%\\u0000%' AND json_array_length(data) = 5
  ORDER BY id LIMIT 1)
WHERE id > (SELECT coalesce(max(id), 0) - 10000 FROM sessions);
`;

const sessionStore: StoreDefinition = {
  store: "The session store",
  applicationId: 0x6b697473, // "kits"
  create: sessions + entries + inputs + times + fences + texts + workspaces + progressTable + summaries,
  upgrades: [
    joinedKeys,
    inputs,
    times + touchedNow,
    fences,
    texts,
    workspaces,
    progressTable,
    summaries + filledSummaries,
  ],
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
  readonly change: Statement;
  readonly insert: Statement;
  readonly insertTwo: Statement;
  /** Returns rows as arrays. */
  readonly read: Statement;
  readonly list: Statement;
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
  const insert = `INSERT INTO entries (id, data, input, at, tokens, cost) SELECT ?1 << 24 | ?2, ?3, ?4, ?5, ?6, ?7
    WHERE EXISTS (SELECT 1 FROM sessions WHERE id = ?1)`;
  const statements = {
    find: prepare(
      `SELECT s.id, s.title, s.state, s.error, s.used_at, ${lastColumns}
         FROM sessions s LEFT JOIN ${lastEntry} WHERE s.agent = ? AND s.instance_id = ? AND s.session = ?`,
    ),
    create: prepare(
      `INSERT INTO sessions (agent, instance_id, session, created_at, parent_id, title, state, error, used_at)
         VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)`,
    ),
    change: prepare("UPDATE sessions SET title = ?, state = ?, error = ?, used_at = ? WHERE id = ?"),
    insert: prepare(insert),
    insertTwo: prepare(
      `${insert} UNION ALL SELECT ?1 << 24 | ?2 + 1, ?8, NULL, ?5, ?6, ?7
         WHERE EXISTS (SELECT 1 FROM sessions WHERE id = ?1)`,
    ),
    read: prepare("SELECT data FROM entries WHERE id > ?1 << 24 | ?2 AND id < (?1 + 1) << 24 ORDER BY id"),
    list: prepare(
      `${selectSessions}
         WHERE s.agent = ?1 AND (?2 IS NULL OR s.instance_id = ?2) AND (?3 IS NULL OR s.session = ?3) ORDER BY s.id`,
    ),
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

/** SQL: the last entry `e` of a session `s`. */
const lastEntry: string =
  "entries e ON e.id = (SELECT max(id) FROM entries WHERE id > s.id << 24 AND id < (s.id + 1) << 24)";

const lastColumns = `coalesce(e.id & ${maxPosition}, 0) AS position, e.at AS touched_at, e.tokens, e.cost`;

/** SQL that selects sessions `s` for `toInfo` and `toTouchedPage`. */
export const selectSessions: string = `SELECT s.id, s.agent, s.instance_id, s.session, s.created_at, s.title, s.state, s.error,
  s.used_at, p.agent AS parent_agent, p.instance_id AS parent_instance_id, p.session AS parent_session, ${lastColumns}
  FROM sessions s LEFT JOIN sessions p ON p.id = s.parent_id LEFT JOIN ${lastEntry}`;

/** SQL for the time of a session's last entry. */
function touched(session: string): string {
  return `(SELECT at FROM entries WHERE id > ${session} << 24 AND id < (${session} + 1) << 24 ORDER BY id DESC LIMIT 1)`;
}
