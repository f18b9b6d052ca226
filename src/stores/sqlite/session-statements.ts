import type { Database, Statement } from "../../sqlite/statements.ts";
import { maxPosition } from "./session-tables.ts";

/** The statements of a session store, prepared once. */
export interface SessionStatements {
  readonly find: Statement;
  readonly create: Statement;
  readonly insert: Statement;
  /** Gives rows as arrays. */
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

function listSessions(place: string, order: "ASC" | "DESC"): string {
  return `SELECT s.id, s.agent, s.instance_id, s.session, s.created_at, p.agent AS parent_agent,
          p.instance_id AS parent_instance_id, p.session AS parent_session,
          ${position("s.id")} AS position, ${touched("s.id")} AS touched_at
   FROM sessions s LEFT JOIN sessions p ON p.id = s.parent_id
   WHERE ${place} AND (?3 IS NULL OR s.agent = ?3) AND (?4 IS NULL OR s.instance_id = ?4)
   ORDER BY s.id ${order} LIMIT ?2`;
}

/** SQL for how many entries a session has. */
function position(session: string): string {
  return `coalesce((SELECT max(id) & ${maxPosition} FROM entries WHERE id > ${session} << 24 AND id < (${session} + 1) << 24), 0)`;
}

/** SQL for when a session's last entry was written. */
function touched(session: string): string {
  return `(SELECT at FROM entries WHERE id > ${session} << 24 AND id < (${session} + 1) << 24 ORDER BY id DESC LIMIT 1)`;
}
