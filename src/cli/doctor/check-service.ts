import { existsSync } from "node:fs";
import { join, resolve } from "node:path";
import type { LoadedConfig } from "../../app/config/load-config.ts";
import { KitClient } from "../../client/kit-client.ts";
import { createEmbeddedEngine } from "../../engine/embedded/create-embedded-engine.ts";
import { count } from "../render/places.ts";
import { findRunningServers, type RunningServer } from "../running-server.ts";
import type { Check } from "./check.ts";

/** How many dead letters are counted. */
const mostCounted = 1_000;

/** Who serves the project, and what is left of the work that it accepted. Nothing is said where there never was any. */
export async function checkService(root: string, { config }: LoadedConfig): Promise<readonly Check[]> {
  const [first, ...others] = await findRunningServers(root);
  const checks: Check[] = [];
  if (first !== undefined) {
    const more = others.length === 0 ? "" : `; ${count(others.length, "other")} standing by`;
    checks.push(await checkServer(first, more));
  }
  const folder = resolve(root, config.engine?.folder ?? join(".kit", "engine"));
  // Opening it where it is not would make it.
  if (existsSync(join(folder, "engine.db"))) checks.push(await checkDeadLetters(folder));
  return checks;
}

/** How long a server may take to say how it is, in ms. */
const healthMs = 2_000;

async function checkServer({ url, pid }: RunningServer, more: string): Promise<Check> {
  const name = "server";
  const message = `${url} (process ${pid})${more}`;
  try {
    await new KitClient({ baseUrl: url, retry: { attempts: 1 }, timeoutMs: healthMs }).health();
    return { name, status: "ok", message };
  } catch (error) {
    const said = error instanceof Error ? error.message : String(error);
    const hint = "Until then it refuses what is new, and what it had accepted may be gone.";
    return { name, status: "error", message: `${message}: ${said}`, hint };
  }
}

async function checkDeadLetters(folder: string): Promise<Check> {
  const engine = createEmbeddedEngine({ folder });
  try {
    const { items } = await engine.listDeadLetters({ limit: mostCounted });
    if (items.length === 0) return { name: "dispatches", status: "ok", message: "none has failed" };
    const number = `${items.length.toLocaleString("en")}${items.length === mostCounted ? " or more" : ""}`;
    return {
      name: "dispatches",
      status: "warning",
      message: `${number} failed`,
      hint: "'kit dispatches list --status failed' lists them, 'kit dispatches retry' tries one again.",
    };
  } finally {
    await engine.drain();
  }
}
