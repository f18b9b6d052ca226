import { KitError } from "../../base/kit-error.ts";
import type { PostgresPool, PostgresQuery } from "./postgres-pool.ts";

/** SQL for the tables of a quoted schema. */
type Migration = (schema: string) => string;

/** What makes each version of the tables out of the one before it; the first makes them. Never changed. */
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
  // In the first of the entries that brought an input in: its id, which a session has once.
  (schema) => `
    ALTER TABLE ${schema}.entries ADD COLUMN input text;
    CREATE UNIQUE INDEX entries_by_input ON ${schema}.entries (session_id, input) WHERE input IS NOT NULL;`,
  // When something was last appended, in ms since 1970, by the database's clock. What there is counts as touched now.
  (schema) => `
    ALTER TABLE ${schema}.sessions ADD COLUMN touched_at bigint NOT NULL
      DEFAULT (extract(epoch FROM now()) * 1000)::bigint;`,
];

/** Only one process migrates at a time; the number is kit's own ("kits"). */
const lockId = 0x6b697473;

/**
 * Brings the tables to the newest version; `schema` is quoted. Throws `unavailable` for tables that a
 * newer kit has made.
 */
export async function migrate(
  pool: PostgresPool,
  schema: string,
  steps: readonly Migration[] = migrations,
): Promise<void> {
  // First without a lock, and for a user who may not create anything.
  if ((await versionOf(pool, schema)) === steps.length) return;
  const connection = await pool.connect();
  let failed = true;
  try {
    await connection.query("BEGIN");
    await connection.query("SELECT pg_advisory_xact_lock($1)", [lockId]);
    await connection.query(
      `CREATE SCHEMA IF NOT EXISTS ${schema};
       CREATE TABLE IF NOT EXISTS ${schema}.migrations (version integer PRIMARY KEY, applied_at timestamptz NOT NULL DEFAULT now());`,
    );
    const version = await versionOf(connection, schema);
    if (version > steps.length) throw tooNew();
    for (const [index, step] of steps.entries()) {
      if (index < version) continue;
      await connection.query(step(schema));
      await connection.query(`INSERT INTO ${schema}.migrations (version) VALUES ($1)`, [index + 1]);
    }
    await connection.query("COMMIT");
    failed = false;
  } finally {
    // A connection with an open transaction is not given back: ending it rolls back.
    connection.release(failed);
  }
}

async function versionOf(connection: PostgresQuery, schema: string): Promise<number> {
  const found = await connection.query("SELECT to_regclass($1) IS NOT NULL AS there", [
    `${schema}.migrations`,
  ]);
  if (found.rows[0]?.there !== true) return 0;
  const { rows } = await connection.query(
    `SELECT coalesce(max(version), 0) AS version FROM ${schema}.migrations`,
  );
  return Number(rows[0]?.version);
}

function tooNew(): KitError {
  return new KitError({
    code: "unavailable",
    message: "The session store was written by a newer kit.",
    hint: "Update kit, or name another schema.",
  });
}
