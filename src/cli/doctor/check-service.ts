import { existsSync } from "node:fs";
import { join, resolve } from "node:path";
import type { LoadedConfig } from "../../app/config/load-config.ts";
import { createEmbeddedEngine } from "../../engine/embedded/create-embedded-engine.ts";
import { count } from "../render/places.ts";
import { findRunningServers } from "../running-server.ts";
import type { Check } from "./check.ts";

/** How many dead letters are counted. */
const mostCounted = 1_000;

/** Who serves the project, and what is left of the work that it accepted. Nothing is said where there never was any. */
export async function checkService(root: string, { config }: LoadedConfig): Promise<readonly Check[]> {
  const [first, ...others] = await findRunningServers(root);
  const checks: Check[] = [];
  if (first !== undefined) {
    const more = others.length === 0 ? "" : `; ${count(others.length, "other")} standing by`;
    checks.push({ name: "server", status: "ok", message: `${first.url} (process ${first.pid})${more}` });
  }
  const folder = resolve(root, config.engine?.folder ?? join(".kit", "engine"));
  if (existsSync(folder)) checks.push(await checkDeadLetters(folder));
  return checks;
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
