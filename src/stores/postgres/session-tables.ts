import type { Migration, Migrations } from "../../postgres/migrate.ts";

/** Migrations: the first creates the tables, each later one upgrades them by one version. Never change an old one. */
export const migrations: readonly Migration[] = [
  (schema) => `
    CREATE TABLE ${schema}.sessions (
      id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
      agent text NOT NULL,
      instance_id text NOT NULL,
      session text NOT NULL,
      created_at text NOT NULL,
      parent_id bigint REFERENCES ${schema}.sessions (id) ON DELETE CASCADE,
      position bigint NOT NULL,
      UNIQUE (agent, instance_id, session)
    );
    CREATE INDEX sessions_by_parent ON ${schema}.sessions (parent_id);
    CREATE TABLE ${schema}.entries (
      session_id bigint NOT NULL REFERENCES ${schema}.sessions (id) ON DELETE CASCADE,
      position bigint NOT NULL,
      data text NOT NULL,
      PRIMARY KEY (session_id, position)
    );`,
  // `input` is set on the first entry of each input, and unique within a session.
  (schema) => `
    ALTER TABLE ${schema}.entries ADD COLUMN input text;
    CREATE UNIQUE INDEX entries_by_input ON ${schema}.entries (session_id, input) WHERE input IS NOT NULL;`,
  // The time of the last append, in ms since 1970, by the database's clock. Existing sessions count as touched now.
  (schema) => `
    ALTER TABLE ${schema}.sessions ADD COLUMN touched_at bigint NOT NULL
      DEFAULT (extract(epoch FROM now()) * 1000)::bigint;`,
  // The highest claimed fence of each instance; appends with a lower one are refused.
  (schema) => `
    CREATE TABLE ${schema}.fences (
      agent text NOT NULL,
      instance_id text NOT NULL,
      fence bigint NOT NULL,
      PRIMARY KEY (agent, instance_id)
    );`,
  // Parts of prompts by digest; `at` is the time of the last use, in ms since 1970.
  (schema) => `
    CREATE TABLE ${schema}.texts (name text PRIMARY KEY, text text NOT NULL, at bigint NOT NULL);
    CREATE INDEX texts_by_age ON ${schema}.texts (at);`,
  // The workspaces of sessions: a manifest each, and the pieces of their files by digest.
  (schema) => `
    CREATE TABLE ${schema}.workspaces (
      agent text NOT NULL,
      instance_id text NOT NULL,
      session text NOT NULL,
      version bigint NOT NULL,
      manifest text NOT NULL,
      PRIMARY KEY (agent, instance_id, session)
    );
    CREATE TABLE ${schema}.workspace_pieces (
      agent text NOT NULL,
      instance_id text NOT NULL,
      session text NOT NULL,
      name text NOT NULL,
      data bytea NOT NULL,
      PRIMARY KEY (agent, instance_id, session, name)
    );`,
];

/** The migrations of the session tables in a quoted schema. */
export function sessionMigrations(schema: string, steps: readonly Migration[] = migrations): Migrations {
  // "kits" in ASCII.
  return { steps, schema, table: "migrations", lockId: 0x6b697473, store: "The session store" };
}

/** The SQL of a store. The comments list the parameters of each statement. */
export interface Statements {
  /**
   * agent, instance_id, session, expected, data, input or null, fence or null, agent and instance_id of the fence. Returns a
   * row if the session was at `expected`.
   */
  readonly append: string;
  /** For the first entries of a session: the same, with created_at and the parent's agent, instance_id and session before the fence. */
  readonly create: string;
  /** agent, instance_id, fence */
  readonly claim: string;
  /** agent, instance_id */
  readonly fence: string;
  /** agent, instance_id. Removes the fence of an instance without sessions. */
  readonly forgetFence: string;
  /** instance_id. Removes the fence of a run whose agents have no sessions. */
  readonly forgetRun: string;
  /** agent, instance_id, session, after */
  readonly read: string;
  /** agent, instance_id or null, session or null */
  readonly list: string;
  /** after, limit, agent or null, instance_id or null */
  readonly listOldest: string;
  /** before, limit, agent or null, instance_id or null */
  readonly listNewest: string;
  /** agent, instance_id, session */
  readonly delete: string;
  /** agent, instance_id, session, before. Returns a row if it deleted the session. */
  readonly deleteUntouched: string;
  /** name, text */
  readonly keepText: string;
  /** name */
  readonly readText: string;
  /** before. Returns a row for each removed text. */
  readonly pruneTexts: string;
}

// An append is one statement: one transaction and one round trip. Its UPDATE locks the session's row, so the second of
// two writers waits, sees the new position, and matches no row; nor does a writer of a deleted session. An input that
// is already recorded violates the unique index, which undoes the whole statement.
const write = (schema: string): string => `
  written AS (
    INSERT INTO ${schema}.entries (session_id, position, data, input)
    SELECT writer.id, $4::bigint + line.number, line.data, CASE WHEN line.number = 1 THEN $6::text END
    FROM writer, unnest($5::text[]) WITH ORDINALITY AS line (data, number)
  )
  SELECT id FROM writer`;

const now = "(extract(epoch FROM clock_timestamp()) * 1000)::bigint";

const isSession = "agent = $1 AND instance_id = $2 AND session = $3";

export function statementsFor(schema: string): Statements {
  const list = (condition: string, order: "ASC" | "DESC"): string => `
      SELECT s.id, s.agent, s.instance_id, s.session, s.created_at, s.position, s.touched_at, p.agent AS parent_agent,
             p.instance_id AS parent_instance_id, p.session AS parent_session
      FROM ${schema}.sessions s LEFT JOIN ${schema}.sessions p ON p.id = s.parent_id
      WHERE ${condition} AND ($3::text IS NULL OR s.agent = $3) AND ($4::text IS NULL OR s.instance_id = $4)
      ORDER BY s.id ${order} LIMIT $2::bigint`;
  // `FOR SHARE` waits for a claim that is being written, so that the append sees its fence.
  const gate = (fence: number): string => `gate AS MATERIALIZED (
        SELECT fence FROM ${schema}.fences
        WHERE agent = $${fence + 1} AND instance_id = $${fence + 2} AND $${fence}::bigint IS NOT NULL FOR SHARE
      ), `;
  const passes = (fence: number): string => `NOT EXISTS (SELECT 1 FROM gate WHERE fence > $${fence}::bigint)`;
  // Delete the workspace in the same statement, so that a new session of the same name starts without its files.
  const workspace = (condition: string): string => `files AS (
        DELETE FROM ${schema}.workspaces WHERE ${isSession} AND ${condition}
      ), pieces AS (DELETE FROM ${schema}.workspace_pieces WHERE ${isSession} AND ${condition})`;
  return {
    fence: `SELECT fence FROM ${schema}.fences WHERE agent = $1 AND instance_id = $2`,
    forgetFence: `
      DELETE FROM ${schema}.fences AS f WHERE f.agent = $1 AND f.instance_id = $2
        AND NOT EXISTS (SELECT 1 FROM ${schema}.sessions AS s WHERE s.agent = f.agent AND s.instance_id = f.instance_id)`,
    forgetRun: `
      DELETE FROM ${schema}.fences AS f WHERE f.agent = '' AND f.instance_id = $1
        AND NOT EXISTS (SELECT 1 FROM ${schema}.sessions AS s WHERE s.instance_id = f.instance_id)`,
    claim: `
      INSERT INTO ${schema}.fences AS old (agent, instance_id, fence) VALUES ($1, $2, $3)
      ON CONFLICT (agent, instance_id) DO UPDATE SET fence = greatest(old.fence, excluded.fence)`,
    append: `
      WITH ${gate(7)}writer AS (
        UPDATE ${schema}.sessions SET position = position + cardinality($5::text[]), touched_at = greatest(touched_at, ${now})
        WHERE ${isSession} AND position = $4::bigint AND ${passes(7)}
        RETURNING id
      ), ${write(schema)}`,
    create: `
      WITH ${gate(11)}writer AS (
        INSERT INTO ${schema}.sessions AS old (agent, instance_id, session, created_at, parent_id, position, touched_at)
        SELECT $1, $2, $3, $7,
          (SELECT id FROM ${schema}.sessions WHERE agent = $8 AND instance_id = $9 AND session = $10),
          cardinality($5::text[]), ${now}
        WHERE ${passes(11)}
        ON CONFLICT (agent, instance_id, session)
          DO UPDATE SET position = EXCLUDED.position WHERE old.position = $4::bigint
        RETURNING id
      ), ${write(schema)}`,
    read: `
      SELECT data FROM ${schema}.entries
      WHERE session_id = (SELECT id FROM ${schema}.sessions WHERE ${isSession}) AND position > $4::bigint
      ORDER BY position`,
    list: `
      SELECT s.agent, s.instance_id, s.session, s.created_at, s.position, p.agent AS parent_agent,
             p.instance_id AS parent_instance_id, p.session AS parent_session
      FROM ${schema}.sessions s LEFT JOIN ${schema}.sessions p ON p.id = s.parent_id
      WHERE s.agent = $1 AND ($2::text IS NULL OR s.instance_id = $2) AND ($3::text IS NULL OR s.session = $3)
      ORDER BY s.id`,
    listOldest: list("s.id > $1::bigint", "ASC"),
    listNewest: list("s.id < $1::bigint", "DESC"),
    // The DELETE waits for a concurrent append and checks the row's `touched_at` again.
    deleteUntouched: `
      WITH RECURSIVE below AS (
        SELECT id, touched_at FROM ${schema}.sessions WHERE ${isSession}
        UNION ALL
        SELECT s.id, s.touched_at FROM ${schema}.sessions s JOIN below ON s.parent_id = below.id
      ), gone AS (
        DELETE FROM ${schema}.sessions WHERE ${isSession} AND touched_at < $4::bigint
          AND NOT EXISTS (SELECT 1 FROM below WHERE touched_at >= $4::bigint)
        RETURNING id
      ), ${workspace("EXISTS (SELECT 1 FROM gone)")}
      SELECT id FROM gone`,
    keepText: `
      INSERT INTO ${schema}.texts (name, text, at) VALUES ($1, $2, ${now})
      ON CONFLICT (name) DO UPDATE SET at = excluded.at`,
    readText: `SELECT text FROM ${schema}.texts WHERE name = $1`,
    pruneTexts: `DELETE FROM ${schema}.texts WHERE at < $1::bigint RETURNING name`,
    delete: `WITH ${workspace("true")} DELETE FROM ${schema}.sessions WHERE ${isSession}`,
  };
}
