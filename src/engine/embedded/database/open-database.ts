import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { KitError } from "../../../base/kit-error.ts";
import { databaseOpenError, refuseEmptyDatabase } from "../../../files/database-file.ts";
import { migrations } from "./migrations.ts";

/** Marks the file as an engine of kit ("kitq"). */
const applicationId = 0x6b697471;

/**
 * Opens, or creates, `engine.db` of a folder; in memory without one. Throws `unavailable` for a file that
 * is damaged, that another program or a newer kit has written, or that is locked for five seconds:
 * accepted work is never thrown away.
 */
export function openDatabase(folder: string | undefined): DatabaseSync {
  const place = { store: "The engine's store", file: folder && join(folder, "engine.db") };
  let database: DatabaseSync | undefined;
  try {
    if (folder !== undefined) mkdirSync(folder, { recursive: true });
    refuseEmptyDatabase(place);
    database = new DatabaseSync(place.file ?? ":memory:", { timeout: 5_000 });
    // First whether the file is ours: changing its journal would change somebody else's database.
    migrate(database);
    database.exec("PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;");
    // From now on waiting is the commit queue's: it does not stop the process meanwhile.
    database.exec("PRAGMA busy_timeout = 0;");
    return database;
  } catch (error) {
    database?.close();
    throw databaseOpenError(place, error);
  }
}

function migrate(database: DatabaseSync): void {
  if (version(database) === migrations.length) return;
  database.exec("BEGIN IMMEDIATE");
  try {
    // Another process may have done it while this one waited for the lock.
    const steps = migrations.slice(version(database));
    for (const step of steps) database.exec(step);
    database.exec(`PRAGMA application_id = ${applicationId}; PRAGMA user_version = ${migrations.length};`);
    database.exec("COMMIT");
  } catch (error) {
    if (database.isTransaction) database.exec("ROLLBACK");
    throw error;
  }
}

/** How many migrations the file has had. Throws for a file that is not ours to change. */
function version(database: DatabaseSync): number {
  const pragma = (name: string): number => Number(database.prepare(`PRAGMA ${name}`).get()?.[name]);
  const owner = pragma("application_id");
  const steps = pragma("user_version");
  const isNew = owner === 0 && steps === 0 && !database.prepare("SELECT 1 FROM sqlite_schema").get();
  if (!isNew && (owner !== applicationId || steps > migrations.length)) {
    throw new KitError({
      code: "unavailable",
      message: "The engine's store was written by a newer kit, or by another program.",
      hint: "Update kit, or name another folder in `engine`.",
    });
  }
  return steps;
}
