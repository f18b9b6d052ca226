import { join } from "node:path";
import type { SessionStore } from "../../stores/contract.ts";
import type { StoreConfig } from "../config/kit-config.ts";
import { stateFolder } from "./state-folder.ts";

/** Opens the store that the configuration names; of the implementations only that one is loaded. */
export async function openStore(config: StoreConfig, root: string): Promise<SessionStore> {
  if (typeof config === "object") return config;
  switch (config) {
    case "memory": {
      const { InMemorySessionStore } = await import("../../stores/memory/memory-store.ts");
      return new InMemorySessionStore();
    }
    case "sqlite": {
      const { SqliteSessionStore } = await import("../../stores/sqlite/sqlite-store.ts");
      return new SqliteSessionStore({ file: join(stateFolder(root), "sessions.db") });
    }
    default: {
      const { PostgresSessionStore } = await import("../../stores/postgres/postgres-store.ts");
      return new PostgresSessionStore({ url: config });
    }
  }
}
