import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { setTimeout as delay } from "node:timers/promises";
import { expect, test } from "vitest";
import { createRandom } from "./seeded-random.ts";
import { createFaultProject, type FaultProject } from "./service/fault-project.ts";
import { send, sendUntilAccepted } from "./service/requests.ts";

const rounds = Number(process.env.KIT_FAULT_ROUNDS ?? 0);
const seed = Number(process.env.KIT_FAULT_SEED ?? 1);
const [runs, kills] = rounds > 0 ? [200, Math.min(rounds, 40)] : [30, 4];

// Steps before and after a signal, and before and after a sleep that is long enough to suspend the run.
const approval = `import { appendFileSync } from "node:fs";
import { join } from "node:path";

export async function run(ctx) {
  const { number } = ctx.payload;
  const note = (step) => appendFileSync(join(process.cwd(), "steps.log"), step + " approval-" + number + "#" + number + "\\n");
  await ctx.step("first", () => note("first"));
  await ctx.sleep(1_000 + number % 700);
  const word = await ctx.waitFor("word");
  await ctx.step("second", () => note("second"));
  return word;
}
`;

const tick = `import { appendFileSync } from "node:fs";
import { join } from "node:path";

export const schedule = "* * * * * *";
export async function run(ctx) {
  await ctx.step("tick", () => appendFileSync(join(process.cwd(), "ticks.log"), ctx.id + " tick#1\\n"));
}
`;

test(
  `of two servers one stands by, and takes over runs, signals and schedules when the other is killed, ${kills} times (seed ${seed})`,
  async () => {
    const random = createRandom(seed);
    const project = await createFaultProject(random, {
      files: { "src/workflows/approval.ts": approval, "src/workflows/tick.ts": tick },
    });
    const servers = [project.kit, await project.another()];
    const urls = servers.map(({ url }) => url);
    for (const server of servers) await server.start();
    const all = Promise.all(Array.from({ length: runs }, (_, index) => approve(urls, index + 1)));
    for (let round = 0; round < kills; round += 1) {
      await delay(300 + random(900));
      // Kills the working server: the other one took over after the last kill.
      const server = servers[round % 2] ?? project.kit;
      await server.end("SIGKILL");
      await delay(random(300));
      await server.start();
    }
    await all;

    // No step runs after a later one, and only an interrupted step runs twice.
    const steps = project.effects("steps");
    expect(new Set(steps.map(({ key, call }) => `${key} ${call}`)).size).toBe(2 * runs);
    for (let number = 1; number <= runs; number += 1) {
      const mine = steps.filter(({ call }) => call === `approval-${number}#${number}`).map(({ key }) => key);
      expect(mine).toEqual(mine.toSorted());
    }
    await checkTicks(project);
  },
  600_000 + kills * 5_000,
);

/** Starts a run at one server, sends its signal to the other, and waits for its end. */
async function approve(urls: readonly string[], number: number): Promise<void> {
  const key = `approval-${number}`;
  const ask = (path: string, body: unknown) => sendUntilAccepted(urls, { path, body, key, from: number });
  const { run_id } = await ask("/workflows/approval", { number });
  await ask(`/runs/${run_id}/signal`, { name: "word", payload: { number } });
  const { result } = await ask("/workflows/approval?wait=result", { number });
  expect(result).toEqual({ number });
}

/** Checks that each second has one completed run, and that new runs are started. */
async function checkTicks({ kit, root, effects }: FaultProject): Promise<void> {
  const before = effects("ticks").length;
  while (effects("ticks").length < before + 2) await delay(50);
  const { body } = await send(`${kit.url}/runs?workflow=tick&limit=1000`);
  // The runs of the last seconds can be running, and one that a kill has requeued can be queued.
  const ended = body.runs.filter(
    ({ status }: { readonly status: string }) => !["queued", "running", "waiting"].includes(status),
  );
  expect(new Set(ended.map(({ status }: { readonly status: string }) => status))).toEqual(
    new Set(["completed"]),
  );
  const done = new Set(effects("ticks").map(({ key }) => key));
  for (const { run_id } of ended) expect(done).toContain(run_id);
  // Sorted by the due time: on a busy machine a late run is accepted in the second of the next one.
  const database = new DatabaseSync(join(root, ".kit/engine/engine.db"), { readOnly: true });
  const keys = database.prepare("SELECT idempotency_key AS key FROM runs WHERE workflow = 'tick'").all();
  database.close();
  const seconds = keys.map(({ key }) => String(key).replace(/#\d+$/, ""));
  expect(seconds.length).toBeGreaterThan(kills / 2);
  expect(new Set(seconds).size).toBe(seconds.length);
}
