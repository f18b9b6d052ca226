import { mkdirSync } from "node:fs";
import { dirname } from "node:path";
import { KitError } from "../base/kit-error.ts";
import { databaseOpenError, refuseEmptyDatabase, retryWhileBusy } from "./database-file.ts";
import { createTransaction, type Database, openFile, pragma, rollback } from "./statements.ts";

/** How long opening waits for another process that holds the file. */
const openTimeoutMs = 5_000;
/** The value of `PRAGMA auto_vacuum` under which freed pages are returned a few at a time. */
export const incrementalVacuum = 2;

/** The schema of a store, whose content kit never deletes. */
export interface StoreDefinition {
  /** "The session store" */
  readonly store: string;
  /** Identifies the file as this store's. */
  readonly applicationId: number;
  /** SQL of a new store's tables. */
  readonly create: string;
  /**
   * `upgrades[n - 1]` turns version n into version n + 1, so the current version is one more than their number.
   * A released upgrade never changes.
   */
  readonly upgrades: readonly string[];
  /** Tells the user what to do about a file of a newer kit or of another program. */
  readonly hint: string;
  /** Whether a new file returns freed pages to the disk (`PRAGMA incremental_vacuum`). */
  readonly shrinks?: boolean | undefined;
  /** Whether a missing folder is created. */
  readonly makesFolder?: boolean | undefined;
}

/**
 * Opens a store in a file, in an open database, or in memory if `where` is `undefined`. Creates it if it is missing, and
 * upgrades it if an older kit has written it. `configure` sets the connection's pragmas. Throws `unavailable` for a file
 * that is damaged, empty, or was written by another program or a newer kit; `store_unavailable` for a file that cannot be
 * opened now.
 */
export function openStore(
  definition: StoreDefinition,
  where: string | Database | undefined,
  configure: (database: Database) => void,
): Database {
  const file = typeof where === "string" ? where : undefined;
  const place = { store: definition.store, file };
  let database: Database | undefined;
  try {
    if (definition.makesFolder && file !== undefined) mkdirSync(dirname(file), { recursive: true });
    refuseEmptyDatabase(place);
    database = typeof where === "object" ? where : openFile(file ?? ":memory:", { timeoutMs: openTimeoutMs });
    const opened = database;
    retryWhileBusy(() => {
      // Comes before the pragmas: a change of the journal mode would change another program's database.
      migrate(opened, definition);
      configure(opened);
    }, openTimeoutMs);
    return opened;
  } catch (error) {
    database?.close();
    throw databaseOpenError(place, error);
  }
}

/** Opens an existing store read-only: it is neither created nor upgraded. Throws like `openStore`. */
export function openStoredFile(definition: StoreDefinition, file: string): Database {
  const place = { store: definition.store, file };
  let database: Database | undefined;
  try {
    refuseEmptyDatabase(place);
    database = openFile(file, { timeoutMs: openTimeoutMs, readOnly: true });
    versionOf(database, definition);
    return database;
  } catch (error) {
    database?.close();
    throw databaseOpenError(place, error);
  }
}

function migrate(database: Database, definition: StoreDefinition): void {
  const { create, upgrades, applicationId, shrinks = false } = definition;
  const current = upgrades.length + 1;
  if (versionOf(database, definition) === current) return;
  // Has an effect only on a file without tables.
  if (shrinks) database.exec(`PRAGMA auto_vacuum = ${incrementalVacuum}`);
  createTransaction(database)(() => {
    // Another process may have migrated it while this one waited for the lock.
    const version = versionOf(database, definition);
    const steps = version === 0 ? [create] : upgrades.slice(version - 1);
    for (const step of steps) database.exec(step);
    database.exec(`PRAGMA application_id = ${applicationId}; PRAGMA user_version = ${current};`);
  });
}

/** The version of the schema; 0 for a new file. Throws for a file of another program or of a newer kit. */
function versionOf(database: Database, { store, hint, applicationId, upgrades }: StoreDefinition): number {
  const { owner, version, isEmpty } = inSnapshot(database, () => ({
    owner: pragma(database, "application_id"),
    version: pragma(database, "user_version"),
    isEmpty:
      database.isShared === true || database.prepare("SELECT 1 FROM sqlite_schema").get() === undefined,
  }));
  if (owner === 0 && version === 0 && isEmpty) return 0;
  if (owner === applicationId && version > 0 && version <= upgrades.length + 1) return version;
  throw new KitError({
    code: "unavailable",
    message: `${store} was written by a newer kit, or by another program.`,
    hint,
  });
}

/** Reads several values of one state of the file: another process can create the store between two statements. */
function inSnapshot<Value>(database: Database, read: () => Value): Value {
  if (database.isTransaction || database.transaction !== undefined) return read();
  database.exec("BEGIN");
  try {
    return read();
  } finally {
    rollback(database);
  }
}
