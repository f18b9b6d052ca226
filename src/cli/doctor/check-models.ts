import { existsSync, statSync } from "node:fs";
import { dirname, join } from "node:path";
import type { StoreConfig } from "../../app/config/config-schema.ts";
import type { LoadedConfig } from "../../app/config/load-config.ts";
import { openStore } from "../../app/runtime/open-parts.ts";
import { withDeadline } from "../../base/abort.ts";
import { KitError } from "../../base/kit-error.ts";
import { writeObstacle } from "../../files/obstacle.ts";
import { toKnownError } from "../report-error.ts";
import type { Check } from "./checks.ts";

/** How long a database may take to answer, in ms. */
const storeMs = 5_000;

/** Where sessions are kept, and whether that can be read. */
export async function checkStore(root: string, { config }: LoadedConfig): Promise<Check> {
  const store = config.store ?? "sqlite";
  const name = "store";
  if (typeof store === "object")
    return { name, status: "ok", message: "a store object of the configuration" };
  if (store === "memory") {
    const hint = "Leave store and KIT_STORE out to keep sessions in .kit/sessions.db.";
    return { name, status: "warning", message: "memory: sessions end with the process", hint };
  }
  const file = join(root, ".kit", "sessions.db");
  const obstacle = store === "sqlite" ? writeObstacle(dirname(file)) : undefined;
  if (obstacle !== undefined) {
    const hint = "Sessions cannot be stored until .kit can be written; KIT_STORE=memory works without it.";
    return {
      name,
      status: "error",
      message: `SQLite, .kit/sessions.db: .kit cannot be written, ${obstacle}`,
      hint,
    };
  }
  if (store === "sqlite" && !existsSync(file)) {
    return { name, status: "ok", message: "SQLite, .kit/sessions.db, made with the first session" };
  }
  const message =
    store === "sqlite"
      ? `SQLite, .kit/sessions.db, ${(statSync(file).size / 1_048_576).toFixed(1)} MB`
      : `Postgres, ${placeOf(store)}`;
  try {
    await withDeadline(readOnce(store, root), {
      ms: storeMs,
      onTimeout: () => new KitError({ code: "unavailable", message: "It does not answer within 5 s." }),
    });
    return { name, status: "ok", message };
  } catch (error) {
    const { message: reason, hint } = toKnownError(error);
    const other = "Check that the database runs, and that the address in store or KIT_STORE is right.";
    return { name, status: "error", message: `${message}: ${reason}`, hint: hint ?? other };
  }
}

async function readOnce(store: StoreConfig, root: string): Promise<void> {
  const opened = await openStore(store, root);
  try {
    await opened.list({ agent: "default", instance_id: "default" });
  } finally {
    await opened.close();
  }
}

/** Host and database of an address, without user and password. */
function placeOf(url: string): string {
  const { host, pathname } = URL.canParse(url) ? new URL(url) : { host: "", pathname: "" };
  return `${host}${pathname}`;
}
