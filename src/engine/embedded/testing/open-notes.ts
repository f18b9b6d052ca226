import { progressTable } from "../../../sqlite/progress.ts";
import { type Database, openFile } from "../../../sqlite/statements.ts";

/** A small store beside an engine, as the session store is. */
export function openNotes(file: string): Database {
  const database = openFile(file, { timeoutMs: 1_000 });
  database.exec("PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL");
  database.exec(`CREATE TABLE IF NOT EXISTS notes (input INTEGER) STRICT; ${progressTable}`);
  return database;
}
