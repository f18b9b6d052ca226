import { spawnSync } from "node:child_process";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { setTimeout as delay } from "node:timers/promises";
import { expect, test } from "vitest";
import { createRandom } from "./seeded-random.ts";
import { checkEffects, checkHistories, dispatchAll } from "./service/accepted-inputs.ts";
import { createFaultProject, type FaultProject } from "./service/fault-project.ts";
import { send, untilSettled } from "./service/requests.ts";

const seed = Number(process.env.KIT_FAULT_SEED ?? 1);
const rounds = Math.min(20, Number(process.env.KIT_FAULT_ROUNDS ?? 1));
const instances = 10;

/** Lets clients dispatch inputs during a fault of the server, and checks that all of them are done in the end. */
async function workThrough(
  project: FaultProject,
  options: { readonly each: number; readonly happen: () => Promise<void> },
): Promise<void> {
  const { kit } = project;
  const clients = Array.from({ length: instances }, (_, index) =>
    dispatchAll([kit.url], { instance: `worker-${index}`, count: options.each }),
  );
  const all = Promise.all(clients);
  await options.happen();
  const accepted = (await all).flat();
  await untilSettled(kit.url);
  for (const { id } of accepted) {
    expect((await send(`${kit.url}/dispatches/${id}`)).body).toMatchObject({ status: "completed" });
  }
  checkEffects(project, accepted, await checkHistories(kit.url, accepted));
}

test(
  `stores that another process locks for a while lose no work and keep its order (${rounds} rounds, seed ${seed})`,
  async () => {
    const random = createRandom(seed);
    const project = await createFaultProject(random);
    await project.kit.start();
    await workThrough(project, {
      each: 5 * rounds,
      async happen() {
        for (let round = 0; round < rounds; round += 1) {
          for (const file of ["engine/engine.db", "engine/events.db", "sessions.db"]) {
            await delay(50 + random(50));
            const other = new DatabaseSync(join(project.root, ".kit", file), { timeout: 5_000 });
            other.exec("BEGIN IMMEDIATE");
            await delay(100 + random(400));
            other.exec("COMMIT");
            other.close();
          }
        }
      },
    });
  },
  600_000 + rounds * 10_000,
);

/** The largest file size for the process: writes beyond it fail, as on a full disk. */
function limitFiles(pid: number, bytes: number | "unlimited"): void {
  const { status } = spawnSync("prlimit", [`--pid=${pid}`, `--fsize=${bytes}:`]);
  expect(status).toBe(0);
}

const hasLimits = spawnSync("prlimit", ["--version"]).status === 0;

test.skipIf(!hasLimits)(
  `a server on a full disk refuses new work with 503, keeps running, and continues once there is room (${rounds} rounds, seed ${seed})`,
  async () => {
    const random = createRandom(seed);
    const project = await createFaultProject(random, { engine: "max_attempts = 30" });
    const { kit } = project;
    await kit.start();
    await workThrough(project, {
      each: 5 * rounds,
      async happen() {
        for (let round = 0; round < rounds; round += 1) {
          await delay(50 + random(100));
          limitFiles(kit.pid, 4_096);
          const refused = await send(`${kit.url}/agents/worker/new/dispatch`, { input: "more" });
          expect(refused).toMatchObject({ status: 503, body: { error: { type: "store_unavailable" } } });
          const large = await send(`${kit.url}/agents/worker/new/dispatch`, { input: "x".repeat(300_000) });
          expect(large).toMatchObject({ status: 503, body: { error: { type: "store_unavailable" } } });
          const prompt = await send(`${kit.url}/agents/worker/prompted`, { message: "more" });
          expect(prompt).toMatchObject({ status: 503, body: { error: { type: "store_unavailable" } } });
          expect((await send(`${kit.url}/health`)).body).toMatchObject({ ok: true });
          await delay(random(300));
          limitFiles(kit.pid, "unlimited");
        }
      },
    });
  },
  600_000 + rounds * 10_000,
);
