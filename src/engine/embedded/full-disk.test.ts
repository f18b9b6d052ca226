import { spawnSync } from "node:child_process";
import { join } from "node:path";
import { afterAll, expect, test } from "vitest";
import { testFolder } from "../../testing/test-folder.ts";
import { createEmbeddedEngine } from "./create-embedded-engine.ts";
import { startEngineProcess } from "./testing/engine-process.ts";

const root = testFolder(afterAll);
const key = { agent: "worker", instance_id: "i", session: "default" };

/** The largest file size for the process: writes beyond it fail, as on a full disk. */
function limitFiles(pid: number, bytes: number | "unlimited"): void {
  const { status } = spawnSync("prlimit", [`--pid=${pid}`, `--fsize=${bytes}:`]);
  expect(status).toBe(0);
}

const hasLimits = spawnSync("prlimit", ["--version"]).status === 0;

test.skipIf(!hasLimits)(
  "an engine on a full disk refuses new work, and continues once there is room",
  async () => {
    const folder = join(root, "full");
    const child = await startEngineProcess({
      folder,
      work: "quick",
      limits: { backoffMs: 20, leaseMs: 2_000 },
    });
    child.notify({ order: "start" });
    await child.collect("started");
    child.notify({ order: "admit", request: { ...key, input: 1 } });
    const accepted = [(await child.collect("admitted")).dispatch_id];
    limitFiles(child.pid, 4_096);
    const from = child.news.length;
    child.notify({ order: "admit", request: { ...key, input: 2 } });
    expect(await child.collect("refused", from)).toEqual({ news: "refused", code: "store_unavailable" });
    limitFiles(child.pid, "unlimited");
    child.notify({ order: "admit", request: { ...key, input: 3 } });
    accepted.push((await child.collect("admitted", from)).dispatch_id);

    const reader = createEmbeddedEngine({ folder });
    for (const id of accepted) expect((await reader.awaitDispatch(id))?.status).toBe("completed");
    expect((await reader.listDispatches()).items.length).toBe(2);
    await reader.drain();
    child.notify({ order: "drain" });
    await child.ended();
  },
);
