import { setTimeout as delay } from "node:timers/promises";
import { expect, test } from "vitest";
import { createRandom } from "./seeded-random.ts";
import { checkEffects, checkHistories, dispatchAll } from "./service/accepted-inputs.ts";
import { createFaultProject } from "./service/fault-project.ts";
import { answerTo } from "./service/model-server.ts";
import { send, untilSettled } from "./service/requests.ts";

const rounds = Number(process.env["KIT_FAULT_ROUNDS"] ?? 0);
const seed = Number(process.env["KIT_FAULT_SEED"] ?? 1);
const isLarge = rounds > 0;
const [instances, each, kills] = isLarge ? [50, 20, Math.max(4, Math.min(rounds, 60))] : [20, 10, 4];

test(
  `of ${instances * each} inputs that were accepted while the server is killed and stopped ${kills} times, none is lost, done twice or overtaken (seed ${seed})`,
  async () => {
    const random = createRandom(seed);
    const project = await createFaultProject(random, `max_attempts = ${kills + 2}`);
    const { kit, model } = project;
    await kit.start();
    const senders = Array.from({ length: instances }, (_, index) =>
      dispatchAll(kit.url, { instance: `worker-${index}`, count: each }),
    );
    const all = Promise.all(senders);
    for (let round = 0; round < kills; round += 1) {
      await delay(30 + random(400));
      // Told to stop, it ends by itself, and with the code of success, whatever is under way.
      if (random(3) === 0) expect(await kit.end("SIGTERM")).toBe(0);
      else await kit.end("SIGKILL");
      await kit.start();
    }
    const accepted = (await all).flat();
    await untilSettled(kit.url);

    const failed: unknown[] = [];
    let repeated = 0;
    for (const { id, input } of accepted) {
      const { body } = await send(`${kit.url}/dispatches/${id}`);
      if (body.status !== "completed" || body.result.text !== answerTo(input)) failed.push(body);
      if (body.attempts > 1) repeated += 1;
    }
    expect(failed).toEqual([]);
    // The kills have hit work.
    expect(repeated).toBeGreaterThan(0);
    expect(new Set(accepted.map(({ id }) => id)).size).toBe(instances * each);
    expect(model.refused).toEqual([]);
    const uncertain = await checkHistories(kit.url, accepted);
    checkEffects(project, accepted, uncertain);
  },
  120_000 + kills * 5_000,
);
