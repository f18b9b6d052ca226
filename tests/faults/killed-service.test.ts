import { setTimeout as delay } from "node:timers/promises";
import { expect, test } from "vitest";
import { stopBetweenWrites } from "../../src/testing/stop-between-writes.ts";
import { createRandom } from "./seeded-random.ts";
import { type Accepted, checkEffects, checkHistories, dispatchAll } from "./service/accepted-inputs.ts";
import { createFaultProject, type FaultProject } from "./service/fault-project.ts";
import { answerTo } from "./service/model-server.ts";
import { send, untilSettled } from "./service/requests.ts";

const rounds = Number(process.env.KIT_FAULT_ROUNDS ?? 0);
const seed = Number(process.env.KIT_FAULT_SEED ?? 1);
const isLarge = rounds > 0;
const [instances, each, kills] = isLarge ? [50, 20, Math.max(4, Math.min(rounds, 60))] : [20, 10, 4];

test(
  `of ${instances * each} inputs that were accepted while the server is killed and stopped ${kills} times, none is lost, done twice or overtaken by a later one (seed ${seed})`,
  async () => {
    const random = createRandom(seed);
    const project = await createFaultProject(random, { engine: `max_attempts = ${kills + 2}` });
    const { kit } = project;
    await kit.start();
    const senders = Array.from({ length: instances }, (_, index) =>
      dispatchAll([kit.url], { instance: `worker-${index}`, count: each }),
    );
    const all = Promise.all(senders);
    for (let round = 0; round < kills; round += 1) {
      // Waits by count until there is work, because a slow machine begins it late.
      await project.model.requested(Math.floor(((round + 1) * instances * each) / (kills + 1)));
      await delay(random(50));
      // Every third signal lets the server finish its work; the others must interrupt some, which a drawn order may not.
      // The server exits with the code of success, whatever is running.
      if (round % 3 === 2) expect(await kit.end("SIGTERM")).toBe(0);
      else await kit.end("SIGKILL");
      await kit.start();
    }
    await checkAllDone(project, (await all).flat());
  },
  600_000 + kills * 5_000,
);

test(
  `two servers of one project, each killed while it works and the other stands by, lose no work (seed ${seed})`,
  async () => {
    const random = createRandom(seed);
    const project = await createFaultProject(random, { engine: `max_attempts = ${kills + 2}` });
    const servers = [project.kit, await project.another()];
    const urls = servers.map(({ url }) => url);
    for (const server of servers) await server.start();
    const all = Promise.all(
      Array.from({ length: instances }, (_, index) =>
        dispatchAll(urls, { instance: `worker-${index}`, count: each }),
      ),
    );
    for (let round = 0; round < kills; round += 1) {
      // Waits by count until there is work, because a slow machine begins it late.
      await project.model.requested(Math.floor(((round + 1) * instances * each) / (kills + 1)));
      await delay(random(50));
      // Kills the working server: the other one took over after the last kill.
      const server = servers[round % 2] ?? project.kit;
      await server.end("SIGKILL");
      await delay(random(200));
      await server.start();
    }
    await checkAllDone(project, (await all).flat());
  },
  600_000 + kills * 5_000,
);

test(`a server that hangs is replaced by its standby, and does no harm when it wakes (seed ${seed})`, async () => {
  const random = createRandom(seed);
  const project = await createFaultProject(random, { engine: `max_attempts = ${kills + 2}` });
  const { kit } = project;
  const other = await project.another();
  await kit.start();
  await other.start();
  // The standby only accepts work, and the other server works.
  const all = Promise.all(
    Array.from({ length: instances }, (_, index) =>
      dispatchAll([other.url], { instance: `worker-${index}`, count: each }),
    ),
  );
  await project.model.requested(instances * 2);
  await stopBetweenWrites(kit.pid, project.root);
  const done = project.effects("keep").length;
  // The lease expires after ten seconds; the rest is for a slow machine.
  await expect.poll(() => project.effects("keep").length).toBeGreaterThan(done);
  await delay(random(500));
  process.kill(kit.pid, "SIGCONT");
  await checkAllDone({ ...project, kit: other }, (await all).flat());
});

async function checkAllDone(project: FaultProject, accepted: readonly Accepted[]): Promise<void> {
  const { kit, model } = project;
  await untilSettled(kit.url);
  const failed: unknown[] = [];
  let repeated = 0;
  for (const { id, input } of accepted) {
    const { body } = await send(`${kit.url}/dispatches/${id}`);
    if (body.status !== "completed" || body.result.text !== answerTo(input)) failed.push(body);
    if (body.attempts > 1) repeated += 1;
  }
  expect(failed).toEqual([]);
  // The kills must have hit work.
  expect(repeated).toBeGreaterThan(0);
  expect(new Set(accepted.map(({ id }) => id)).size).toBe(instances * each);
  expect(model.refused).toEqual([]);
  checkEffects(project, accepted, await checkHistories(kit.url, accepted));
}
