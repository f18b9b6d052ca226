import type { Migration, Migrations } from "../../postgres/migrate.ts";
import { usedStepMs } from "../session-row.ts";

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
  // The columns that lists show of a session. Sums are null if they are unknown. `used_at` (ms) follows `touched_at` at most once a second:
  // other appends change no column of an index, so that Postgres need not write the indexes. The upgrade reads the first
  // entries of the newest 10,000 sessions for their titles; Postgres cannot read every escape that JSON can contain.
  (schema) => `
    ALTER TABLE ${schema}.sessions ADD COLUMN title text, ADD COLUMN state text NOT NULL DEFAULT 'idle', ADD COLUMN error text,
      ADD COLUMN tokens bigint, ADD COLUMN cost double precision, ADD COLUMN used_at bigint NOT NULL DEFAULT 0;
    UPDATE ${schema}.sessions AS s SET used_at = touched_at, title = CASE
      WHEN id > (SELECT max(id) FROM ${schema}.sessions) - 10000 THEN (
        SELECT nullif(left(btrim(regexp_replace(CASE
          WHEN data LIKE '[2,"user",%' AND data NOT LIKE '%\\\\u0000%' AND data NOT LIKE '%\\\\ud%'
          THEN CASE WHEN json_array_length(data::json) = 5 THEN data::json #>> '{4,0,text}' END END, '\\s+', ' ', 'g')), 80), '')
        FROM ${schema}.entries WHERE session_id = s.id AND position <= 20 AND length(data) < 100000
          AND data LIKE '[2,"user",%' ORDER BY position LIMIT 1)
      END;
    CREATE INDEX sessions_by_use ON ${schema}.sessions (used_at, id);
    CREATE INDEX sessions_by_state ON ${schema}.sessions (state, id) WHERE state <> 'idle';`,
];

/** The migrations of the session tables in a quoted schema. */
export function sessionMigrations(schema: string, steps: readonly Migration[] = migrations): Migrations {
  // "kits" in ASCII.
  return { steps, schema, table: "migrations", lockId: 0x6b697473, store: "The session store" };
}

/** The SQL of a store. The comments list the parameters of each statement. */
export interface Statements {
  /**
   * Several appends to different sessions. Arrays with an element per append: agent, instance_id, session, expected, number of entries,
   * input or null; agent, instance_id and session of the parent or nulls; fence or null, agent and instance_id of the fence; title or null,
   * state or null, error or null, tokens and cost of the change; then created_at; then arrays with an element per entry: the number of its
   * append from 1, its place in it from 1, data. Returns the numbers of the appends whose session was at `expected`.
   */
  readonly append: string;
  /**
   * Arrays of different instances: agent, instance_id, fence. Returns whether each can have a session. The claims wait for the disk,
   * except those of instances without a session and without an earlier owner: no writer has a lower fence.
   */
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

const now = "(extract(epoch FROM clock_timestamp()) * 1000)::bigint";

const isSession = "agent = $1 AND instance_id = $2 AND session = $3";

export function statementsFor(schema: string): Statements {
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
      WITH claimed AS (
        INSERT INTO ${schema}.fences AS old (agent, instance_id, fence)
        SELECT * FROM unnest($1::text[], $2::text[], $3::bigint[]) AS new (agent, instance_id, fence) ORDER BY agent, instance_id
        ON CONFLICT (agent, instance_id) DO UPDATE SET fence = greatest(old.fence, excluded.fence)
        RETURNING agent, instance_id, old.xmax::text <> '0' OR agent = '' OR EXISTS (
          SELECT 1 FROM ${schema}.sessions AS s WHERE s.agent = old.agent AND s.instance_id = old.instance_id) AS used
      ), quick AS MATERIALIZED (
        SELECT CASE WHEN NOT bool_or(used) THEN set_config('synchronous_commit', 'off', true) END FROM claimed
      )
      SELECT agent, instance_id, used FROM claimed, quick`,
    // One statement is one transaction and one round trip. It locks a session's row, so the second of two writers waits, sees the
    // new position, and matches no row; nor does a writer of a deleted session. An input that is already recorded violates the
    // unique index, which undoes the whole statement. `FOR SHARE` waits for a claim that is being written, so that the append sees its fence.
    append: `
      WITH asked AS MATERIALIZED (
        SELECT * FROM unnest($1::text[], $2::text[], $3::text[], $4::bigint[], $5::int[], $6::text[], $7::text[], $8::text[], $9::text[],
          $10::bigint[], $11::text[], $12::text[], $13::text[], $14::text[], $15::text[], $16::bigint[], $17::double precision[])
          WITH ORDINALITY AS asked (agent, instance_id, session, expected, entries, input, parent_agent, parent_instance, parent_session,
            fence, lease_agent, lease_instance, title, state, error, tokens, cost, number)
      ), gate AS MATERIALIZED (
        SELECT f.agent, f.instance_id, f.fence FROM ${schema}.fences AS f
        WHERE (f.agent, f.instance_id) IN (SELECT lease_agent, lease_instance FROM asked WHERE fence IS NOT NULL)
        ORDER BY f.agent, f.instance_id FOR SHARE
      ), passing AS MATERIALIZED (
        SELECT * FROM asked WHERE NOT EXISTS (SELECT 1 FROM gate
          WHERE gate.agent = lease_agent AND gate.instance_id = lease_instance AND gate.fence > asked.fence)
      ), created AS (
        INSERT INTO ${schema}.sessions AS old (agent, instance_id, session, created_at, parent_id, position, touched_at, used_at,
          title, state, error, tokens, cost)
        SELECT agent, instance_id, session, $18, (SELECT id FROM ${schema}.sessions AS p
            WHERE p.agent = parent_agent AND p.instance_id = parent_instance AND p.session = parent_session),
          entries, ${now}, ${now}, title, coalesce(state, 'idle'), error, tokens, cost
        FROM passing WHERE expected = 0 ORDER BY agent, instance_id, session
        ON CONFLICT (agent, instance_id, session) DO UPDATE SET position = excluded.position WHERE old.position = 0
        RETURNING id, agent, instance_id, session
      ), locked AS MATERIALIZED (
        SELECT s.id, passing.* FROM ${schema}.sessions AS s JOIN passing USING (agent, instance_id, session)
        WHERE expected > 0 AND s.position = expected ORDER BY s.agent, s.instance_id, s.session FOR NO KEY UPDATE OF s
      ), continued AS (
        UPDATE ${schema}.sessions AS s SET position = position + new.entries, touched_at = greatest(touched_at, ${now}),
          title = coalesce(s.title, new.title), state = coalesce(new.state, s.state),
          error = CASE WHEN new.state IS NULL THEN s.error ELSE new.error END,
          tokens = s.tokens + new.tokens, cost = s.cost + new.cost,
          used_at = CASE WHEN ${now} - used_at >= ${usedStepMs} THEN ${now} ELSE used_at END
        FROM locked AS new WHERE s.id = new.id AND s.position = new.expected
        RETURNING s.id, s.agent, s.instance_id, s.session
      ), writer AS MATERIALIZED (
        SELECT id, number, expected, input
        FROM (SELECT * FROM created UNION ALL SELECT * FROM continued) AS changed JOIN passing USING (agent, instance_id, session)
      ), written AS (
        INSERT INTO ${schema}.entries (session_id, position, data, input)
        SELECT id, expected + line, data, CASE WHEN line = 1 THEN input END
        FROM writer JOIN unnest($19::int[], $20::int[], $21::text[]) AS line (number, line, data) USING (number)
      )
      SELECT number::int FROM writer`,
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
