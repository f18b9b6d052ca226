import { rmSync, statSync, truncateSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { expect, test } from "vitest";
import { createRandom } from "./seeded-random.ts";
import { createFaultProject, type FaultProject } from "./service/fault-project.ts";
import { send, untilSettled } from "./service/requests.ts";

const rounds = Number(process.env.KIT_FAULT_ROUNDS ?? 4);
const random = createRandom(Number(process.env.KIT_FAULT_SEED ?? 1));
/** Few enough for SQLite not to begin the log again from its start: then its second half would be old. */
const inputs = 40;
const lost = "Stored work is lost";

const dispatch = async ({ kit }: FaultProject, number: number): Promise<string> =>
  (await send(`${kit.url}/agents/worker/w${number}/dispatch`, { input: `#${number}` })).body.dispatch_id;

async function problemsOf({ kit }: FaultProject): Promise<string[]> {
  const { problems } = (await send(`${kit.url}/cluster`)).body;
  return problems.map(({ message }: { readonly message: string }) => message);
}

test.each([
  ["engine/engine.db", "half of its log is cut", (log: string) => truncateSync(log, statSync(log).size / 2)],
  ["engine/engine.db", "its log is deleted", (log: string) => rmSync(log)],
  ["sessions.db", "its log is deleted", (log: string) => rmSync(log)],
])(
  "a start after %s was damaged (%s) is logged as a loss once, and the server works",
  async (name, _how, damage) => {
    const project = await createFaultProject(random);
    const { kit, root } = project;
    await kit.start();
    const receipts: string[] = [];
    for (let number = 0; number < inputs; number += 1) {
      receipts.push(await dispatch(project, number));
    }
    await untilSettled(kit.url);
    await kit.end("SIGKILL");
    damage(join(root, `.kit/${name}-wal`));
    await kit.start();
    if (name !== "sessions.db") {
      const found = await Promise.all(receipts.map((id) => send(`${kit.url}/dispatches/${id}`)));
      expect(found.filter(({ status }) => status === 404)).not.toEqual([]);
    }
    await expect.poll(kit.stderr, { timeout: 10_000 }).toContain(`${lost}: .kit/${name} lacks `);
    expect(await problemsOf(project)).toEqual([expect.stringContaining(`.kit/${name} lacks `)]);
    await dispatch(project, inputs);
    await untilSettled(kit.url);
    // The loss is in the log now, so the next mark replaces what the files know of each other.
    await delay(2_500);
    await kit.end("SIGKILL");
    await kit.start();
    await delay(1_500);
    expect(await problemsOf(project)).toEqual([]);
    expect(kit.stderr().split(lost)).toHaveLength(2);
  },
);

test(`a server that is killed ${rounds} times while it works reports no loss`, async () => {
  const project = await createFaultProject(random);
  const { kit } = project;
  for (let round = 0; round < rounds; round += 1) {
    await kit.start();
    const until = performance.now() + 500 + random(2_500);
    for (let number = 0; performance.now() < until; number += 1) await dispatch(project, number % 20);
    await kit.end(round % 3 === 2 ? "SIGTERM" : "SIGKILL");
  }
  await kit.start();
  await delay(1_500);
  expect(await problemsOf(project)).toEqual([]);
  expect(kit.stderr()).not.toContain(lost);
});
