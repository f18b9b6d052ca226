import { setTimeout as delay } from "node:timers/promises";
import { expect, test } from "vitest";
import { createRandom } from "./seeded-random.ts";
import { createFaultProject } from "./service/fault-project.ts";
import { send } from "./service/requests.ts";
import { clockEnvironment, clockLibrary, setClock } from "./service/wrong-clock.ts";

const sleeper = `export async function run(ctx) {
  await ctx.sleep(4_000);
  return "awake";
}
`;
const tick = `import { appendFileSync } from "node:fs";
import { join } from "node:path";

export const schedule = "* * * * * *";
export async function run(ctx) {
  await ctx.step("tick", () => appendFileSync(join(process.cwd(), "ticks.log"), ctx.id + " tick#1\\n"));
}
`;

test.skipIf(clockLibrary === undefined)(
  "after its clock is set an hour back, then two forward, a server keeps the duration of sleeps, its schedules and its work",
  async () => {
    const { kit, root, effects } = await createFaultProject(createRandom(1), {
      files: { "src/workflows/sleeper.ts": sleeper, "src/workflows/tick.ts": tick },
    });
    setClock(root, 0);
    await kit.start(clockEnvironment(root));
    const ticks = (): number => effects("ticks").length;
    for (const hours of [-1, 1]) {
      const before = performance.now();
      const { body } = await send(`${kit.url}/workflows/sleeper`, {});
      await delay(1_500);
      setClock(root, hours);
      await expect
        .poll(async () => (await send(`${kit.url}/runs/${body.run_id}`)).body.status, { timeout: 30_000 })
        .toBe("completed");
      const took = performance.now() - before;
      expect(took).toBeGreaterThan(3_990);
      // The server notices within one heartbeat of its lease. It starts one run a second, and none for the skipped hours.
      const [count, from] = [ticks(), performance.now()];
      await expect.poll(() => ticks() - count, { timeout: 30_000 }).toBeGreaterThanOrEqual(2);
      await delay(2_000);
      expect(ticks() - count).toBeLessThan(10 + (performance.now() - from) / 1_000);
      const reply = await send(`${kit.url}/agents/worker/a`, { message: `#${hours + 5}` });
      expect(reply.status).toBe(200);
    }
    expect(kit.stderr()).toContain("The clock was set back by 1 h");
    expect(kit.stderr()).toContain("The clock was set forward by 2 h");
    expect(await kit.end("SIGTERM")).toBe(0);
  },
  90_000,
);
