import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, beforeAll, expect, test } from "vitest";
import { postgresForTests } from "../../testing/postgres-for-tests.ts";
import { openWay, type WayToServer } from "../../testing/way-to-server.ts";
import { createPostgresEngine } from "./create-postgres-engine.ts";

const server = postgresForTests();
let way: WayToServer;

beforeAll(async () => {
  way = await openWay(new URL(server.url));
});
afterAll(async () => {
  await way?.close();
});

test("a run whose first moment loses the database has one execution, which goes on", async () => {
  const engine = await createPostgresEngine({ url: way.url, schema: "starts" });
  const begun: AbortSignal[] = [];
  const beside: number[] = [];
  await engine.start({
    dispatch: async () => null,
    async run({ signal }) {
      // A busy machine is back too late, and loses the run: the signal of the first execution tells it so.
      if (begun.some((earlier) => !earlier.aborted)) beside.push(begun.length);
      begun.push(signal);
      if (begun.length === 1) await way.close().then(way.open);
      // A second execution would begin a second after the first one could not go on.
      await sleep(1_500);
      return null;
    },
  });
  const { run_id } = await engine.startRun({ workflow: "slow", payload: null });
  expect(await engine.awaitRun(run_id)).toMatchObject({ status: "completed" });
  expect(beside).toEqual([]);
  await engine.drain({ timeoutMs: 0 });
}, 60_000);
