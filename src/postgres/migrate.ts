import { KitError } from "../base/kit-error.ts";
import type { PostgresPool, PostgresQuery } from "./pool.ts";

/** SQL for the tables of a quoted schema. */
export type Migration = (schema: string) => string;

export interface Migrations {
  /** Each step makes its version of the tables from the one before; the first creates them. Never changed. */
  readonly steps: readonly Migration[];
  /** Quoted. */
  readonly schema: string;
  /** The table that counts the steps which were taken. */
  readonly table: string;
  /** Only one process migrates at a time: the number of the advisory lock. */
  readonly lockId: number;
  /** As the subject of an error's sentence: `The session store`. */
  readonly store: string;
}

/**
 * Brings tables to their newest version, in one transaction: a process that dies in the middle leaves the version before. Throws
 * `unavailable` for tables that a newer kit has made.
 */
export async function migrate(pool: PostgresPool, migrations: Migrations): Promise<void> {
  const { steps, schema, table, lockId } = migrations;
  // First without a lock, and for a user who may not create anything.
  if ((await versionOf(pool, migrations)) === steps.length) return;
  const connection = await pool.connect();
  let failed = true;
  try {
    await connection.query("BEGIN");
    // A migration takes its time, and waits for that of another process, whatever limits the role has.
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
    // A connection with an open transaction is not given back: ending it rolls back.
    connection.release(failed);
  }
}

/** Throws `not_found` where there are no tables, and `unavailable` for those that a newer kit has made. Changes nothing. */
export async function checkMigrated(pool: PostgresPool, migrations: Migrations): Promise<void> {
  const version = await versionOf(pool, migrations);
  if (version > migrations.steps.length) throw tooNew(migrations, version);
  if (version > 0) return;
  throw new KitError({
    code: "not_found",
    message: `${migrations.store} is not in this database: it has no kit tables in the schema ${migrations.schema}.`,
    hint: "Check the address and the name of the schema. The first start makes the tables.",
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
    hint: `Update kit, or name another schema. The tables have version ${version}, this kit knows ${steps.length}.`,
  });
}

/** A name as an identifier of SQL. Throws `invalid_request` for what Postgres would cut or refuse. */
export function quotedSchema(name: string): string {
  if (name === "" || name.includes("\0") || Buffer.byteLength(name) > 63) {
    throw new KitError({ code: "invalid_request", message: "The name of a schema has 1 to 63 bytes." });
  }
  return `"${name.replaceAll('"', '""')}"`;
}
