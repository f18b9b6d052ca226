import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, beforeAll, expect, test } from "vitest";
import { type PostgresServer, startPostgres } from "../../testing/postgres-server.ts";
import { openWay, type WayToServer } from "../../testing/way-to-server.ts";
import { createPostgresEngine } from "./create-postgres-engine.ts";

let server: PostgresServer;
let way: WayToServer;

beforeAll(async () => {
  server = await startPostgres();
  way = await openWay(new URL(server.url));
});
afterAll(async () => {
  await way?.close();
  await server?.stop();
});

test("a run whose first moment loses the database has one execution, which goes on", async () => {
  const engine = await createPostgresEngine({ url: way.url, schema: "starts" });
  const atWork = new Map<string, number>();
  let most = 0;
  let begun = 0;
  await engine.start({
    dispatch: async () => null,
    async run({ id }) {
      begun += 1;
      atWork.set(id, (atWork.get(id) ?? 0) + 1);
      most = Math.max(most, atWork.get(id) ?? 0);
      if (begun === 1) await way.close().then(way.open);
      // A second execution begins a second after the first one could not go on.
      await sleep(1_500);
      atWork.set(id, (atWork.get(id) ?? 0) - 1);
      return null;
    },
  });
  const { run_id } = await engine.startRun({ workflow: "slow", payload: null });
  expect(await engine.awaitRun(run_id)).toMatchObject({ status: "completed" });
  expect({ most, begun }).toEqual({ most: 1, begun: 1 });
  await engine.drain({ timeoutMs: 0 });
}, 60_000);
