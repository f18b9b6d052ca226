import { join } from "node:path";
import type { DatabaseSync } from "node:sqlite";
import { openStore, type StoreDefinition } from "../../../sqlite/open-store.ts";
import { migrations } from "./migrations.ts";

const engineStore: StoreDefinition = {
  store: "The engine's store",
  applicationId: 0x6b697471, // "kitq"
  create: migrations.join(""),
  upgrades: migrations.slice(1),
  hint: "Update kit, or name another folder in `engine`.",
  makesFolder: true,
};

/** Opens, or creates, `engine.db` of a folder; in memory without one. Throws like `openStore`. */
export function openDatabase(folder: string | undefined): DatabaseSync {
  return openStore(engineStore, folder && join(folder, "engine.db"), (database) => {
    database.exec("PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;");
    // From here on the commit queue waits for locks, which does not stop the process.
    database.exec("PRAGMA busy_timeout = 0;");
  });
}
