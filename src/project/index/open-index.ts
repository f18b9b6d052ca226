import { mkdirSync, statSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { isDamage } from "./damaged-index-error.ts";
import { type IndexDatabase, openDatabase } from "./index-database.ts";
import { readMeta } from "./meta.ts";
import { applicationId, schemaVersion } from "./schema.ts";
import { isSealed } from "./seal.ts";

/** An index that can be used, or why there is none. */
export type OpenedIndex =
  | { readonly kind: "usable"; readonly database: IndexDatabase }
  | { readonly kind: "missing" }
  | { readonly kind: "unusable"; readonly reason: string };

/** How long a statement waits for another process that writes. */
const busyTimeoutMs = 5000;

/** Opens the index at a path. Nothing of a file that is damaged, foreign or of another version is used. */
export function openIndex(file: string, fingerprint: string): OpenedIndex {
  const size = statSync(file, { throwIfNoEntry: false })?.size ?? 0;
  // Nothing is lost with a file that a system crash has left empty.
  if (size === 0) return { kind: "missing" };
  let database: IndexDatabase | undefined;
  try {
    database = openDatabase(file, { busyTimeoutMs });
    const reason = whyUnusable(database, fingerprint);
    if (reason === undefined) {
      database.exec("PRAGMA cache_size = -16384; PRAGMA temp_store = MEMORY");
      return { kind: "usable", database };
    }
    database.close();
    return { kind: "unusable", reason };
  } catch (error) {
    database?.close();
    if (isDamage(error)) return { kind: "unusable", reason: "The index was damaged." };
    throw error;
  }
}

/** Opens a connection to write with, to an index that is open. It never waits: its user does. */
export function openWriter(file: string): IndexDatabase {
  const database = openDatabase(file, { busyTimeoutMs: 0 });
  // What a power failure can take away is found again by the next pass.
  database.exec(
    "PRAGMA synchronous = NORMAL; PRAGMA wal_autocheckpoint = 0; PRAGMA cache_size = -16384; PRAGMA temp_store = MEMORY",
  );
  return database;
}

function whyUnusable(database: IndexDatabase, fingerprint: string): string | undefined {
  const pragma = (name: string): number => database.get<[number]>(`PRAGMA ${name}`)?.[0] ?? 0;
  if (pragma("application_id") !== applicationId) return "The file was not an index of kit.";
  const version = pragma("user_version");
  if (version < schemaVersion) return "The index was made by an older version of kit.";
  if (version > schemaVersion) return "The index was made by a newer version of kit.";
  if (!isSealed(database.file)) return "The index was damaged, or changed by something else than kit.";
  const known = readMeta(database, "fingerprint");
  return known === fingerprint ? undefined : "The configuration or the version of kit has changed.";
}

/** Makes the folder of an index, and keeps what is in it out of Git. */
export function makeIndexFolder(file: string): void {
  const folder = dirname(file);
  mkdirSync(folder, { recursive: true });
  try {
    writeFileSync(join(folder, ".gitignore"), "*\n", { flag: "wx" });
  } catch {
    // It is there already; or the folder cannot be written, which the database will tell.
  }
}
