import { setTimeout as delay } from "node:timers/promises";
import { expect, test } from "vitest";
import { createRandom } from "./seeded-random.ts";
import { createFaultProject } from "./service/fault-project.ts";
import type { KitProcess } from "./service/kit-process.ts";
import { answerTo } from "./service/model-server.ts";
import { send, sendUntilAccepted } from "./service/requests.ts";

const rounds = Number(process.env.KIT_FAULT_ROUNDS ?? 0);
const seed = Number(process.env.KIT_FAULT_SEED ?? 1);
const [sessions, each, runs, kills] = rounds > 0 ? [20, 25, 200, Math.min(rounds, 40)] : [8, 8, 40, 3];

test(
  `prompts with a key and workflows are answered across ${kills} kills, and each input and step counts once (seed ${seed})`,
  async () => {
    const random = createRandom(seed);
    const project = await createFaultProject(random, { engine: `max_attempts = ${kills + 2}` });
    const { kit } = project;
    await kit.start();
    const all = Promise.all([
      ...Array.from({ length: sessions }, (_, index) => converse(kit, `talker-${index}`)),
      ...Array.from({ length: runs }, (_, index) => order(kit, index + 1)),
    ]);
    for (let round = 0; round < kills; round += 1) {
      await delay(30 + random(400));
      await kit.end("SIGKILL");
      await kit.start();
    }
    await all;
    for (let index = 0; index < sessions; index += 1) await checkHistory(kit, `talker-${index}`);

    expect(project.model.refused).toEqual([]);
    const noted = project.effects("note");
    expect(new Set(noted.map(({ call }) => call)).size).toBe(noted.length);
    // Only an interrupted step is repeated, so no step runs after a later one.
    const steps = project.effects("steps");
    expect(new Set(steps.map(({ key, call }) => `${key} ${call}`)).size).toBe(2 * runs);
    for (let number = 1; number <= runs; number += 1) {
      const keys = steps.filter(({ call }) => call === `order-${number}#${number}`).map(({ key }) => key);
      expect(keys).toEqual(keys.toSorted());
    }
    const { body } = await send(`${kit.url}/runs?status=completed&limit=1000`);
    expect(body.runs).toHaveLength(runs);
  },
  600_000 + kills * 5_000,
);

const prompts = Array.from({ length: each }, (_, index) => `#${index + 1}`);

/** A conversation in which each question waits for the previous answer. */
async function converse({ url }: KitProcess, instance: string): Promise<void> {
  for (const message of prompts) {
    const path = `/agents/worker/${instance}`;
    const { result } = await sendUntilAccepted([url], { path, key: message, body: { message } });
    expect(result.text).toBe(answerTo(message));
  }
}

async function checkHistory({ url }: KitProcess, instance: string): Promise<void> {
  const { body } = await send(`${url}/agents/worker/${instance}/history`);
  const { body: log } = await send(`${url}/agents/worker/${instance}/history?limit=100`);
  const questions = body.messages.filter(({ role }: { readonly role: string }) => role === "user");
  expect(JSON.stringify(questions).match(/#\d+/g), JSON.stringify({ body, log })).toEqual(prompts);
}

async function order({ url }: KitProcess, number: number): Promise<void> {
  const path = "/workflows/order?wait=result";
  const { result } = await sendUntilAccepted([url], { path, key: `order-${number}`, body: { number } });
  expect(result).toEqual({ text: answerTo(`#${number}`) });
}
