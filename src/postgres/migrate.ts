import { KitError } from "../base/kit-error.ts";
import type { PostgresQuery } from "./named-statements.ts";
import type { PostgresPool } from "./pool.ts";

/** Returns the SQL of one step for a quoted schema. */
export type Migration = (schema: string) => string;

export interface Migrations {
  /** Each step upgrades the tables by one version; the first step creates them. A released step never changes. */
  readonly steps: readonly Migration[];
  /** Quoted. */
  readonly schema: string;
  /** The table that records the finished steps. */
  readonly table: string;
  /** The number of the advisory lock, so that one process migrates at a time. */
  readonly lockId: number;
  /** The subject of error messages: `The session store`. */
  readonly store: string;
}

/**
 * Migrates tables to their newest version, in one transaction: if the process dies, the old version stays. Throws
 * `unavailable` for tables of a newer kit.
 */
export async function migrate(pool: PostgresPool, migrations: Migrations): Promise<void> {
  const { steps, schema, table, lockId } = migrations;
  // Checks first without a lock: a role without the right to create tables can use migrated ones.
  if ((await versionOf(pool, migrations)) === steps.length) return;
  const connection = await pool.connect();
  let failed = true;
  try {
    await connection.query("BEGIN");
    // A migration can take long, and waits for that of another process, so the limits of the role must not apply.
    await connection.query("SET LOCAL statement_timeout = 0; SET LOCAL lock_timeout = 0");
    await connection.query("SELECT pg_advisory_xact_lock($1)", [lockId]);
    await connection.query(
      `CREATE SCHEMA IF NOT EXISTS ${schema};
       CREATE TABLE IF NOT EXISTS ${schema}.${table} (version integer PRIMARY KEY, applied_at timestamptz NOT NULL DEFAULT now());`,
    );
    const version = await versionOf(connection, migrations);
    if (version > steps.length) throw tooNew(migrations, version);
    for (const [index, step] of steps.entries()) {
      if (index < version) continue;
      await connection.query(step(schema));
      await connection.query(`INSERT INTO ${schema}.${table} (version) VALUES ($1)`, [index + 1]);
    }
    await connection.query("COMMIT");
    failed = false;
  } finally {
    // After an error the connection is ended, not returned to the pool: this rolls the transaction back.
    connection.release(failed);
  }
}

/** Throws `not_found` if there are no tables, and `unavailable` for tables of a newer kit. Changes nothing. */
export async function checkMigrated(pool: PostgresPool, migrations: Migrations): Promise<void> {
  const version = await versionOf(pool, migrations);
  if (version > migrations.steps.length) throw tooNew(migrations, version);
  if (version > 0) return;
  throw new KitError({
    code: "not_found",
    message: `${migrations.store} is not in this database: it has no kit tables in the schema ${migrations.schema}.`,
    hint: "Check the address and the name of the schema. The first start creates the tables.",
  });
}

async function versionOf(connection: PostgresQuery, { schema, table }: Migrations): Promise<number> {
  const found = await connection.query("SELECT to_regclass($1) IS NOT NULL AS there", [`${schema}.${table}`]);
  if (found.rows[0]?.there !== true) return 0;
  const { rows } = await connection.query(
    `SELECT coalesce(max(version), 0) AS version FROM ${schema}.${table}`,
  );
  return Number(rows[0]?.version);
}

function tooNew({ store, steps }: Migrations, version: number): KitError {
  return new KitError({
    code: "unavailable",
    message: `${store} was written by a newer kit.`,
    hint: `Update kit, or use another schema. The tables have version ${version}; this kit supports versions up to ${steps.length}.`,
  });
}

/** Quotes a name as an SQL identifier. Throws `invalid_request` for a name that Postgres would truncate or refuse. */
export function quotedSchema(name: string): string {
  if (name === "" || name.includes("\0") || Buffer.byteLength(name) > 63) {
    throw new KitError({ code: "invalid_request", message: "The name of a schema must have 1 to 63 bytes." });
  }
  return `"${name.replaceAll('"', '""')}"`;
}
