import { setTimeout as sleep } from "node:timers/promises";
import { expect, test } from "vitest";
import { storeUnavailable } from "../../protocol/error-code.ts";
import { postgresForTests } from "../../testing/postgres-for-tests.ts";
import { createPostgresEngine } from "./create-postgres-engine.ts";
import { openEngineDatabase } from "./engine-database.ts";

const server = postgresForTests();

test("a node that loses and regains its shards keeps the order of a session whose first input is still running", async () => {
  const target = { url: server.url, schema: "regained" };
  const engine = await createPostgresEngine(target);
  const database = await openEngineDatabase(target);
  const begun: unknown[] = [];
  const release = Promise.withResolvers<void>();
  const lost = Promise.withResolvers<void>();
  await engine.start({
    run: async () => null,
    async dispatch({ attempt, signal }, { input }) {
      begun.push([input, attempt]);
      if (begun.length > 1) return null;
      signal.addEventListener("abort", () => lost.resolve());
      // Its work ignores the lease.
      await release.promise;
      return null;
    },
  });
  const session = { agent: "a", instance_id: "i", session: "s" };
  const receipts = [];
  for (let input = 1; input <= 4; input += 1) receipts.push(await engine.admit({ ...session, input }));
  await expect.poll(() => begun.length).toBe(1);
  // As another node does that takes the shards and dies.
  await database.run("UPDATE $s.shards SET fence = fence + 1, node = 'another'");
  await database.run("SELECT pg_terminate_backend(backend) FROM $s.nodes");
  await lost.promise;
  await expect.poll(() => engine.cluster?.owns(session)).toBe(true);
  const [first] = receipts;
  const statusOf = async () => (await engine.getDispatch(first?.dispatch_id ?? ""))?.status;
  await expect.poll(statusOf).toBe("queued");
  // By now its rows were read again.
  await sleep(100);
  release.resolve();
  for (const { dispatch_id } of receipts) await engine.awaitDispatch(dispatch_id);
  expect(begun).toEqual([
    [1, 1],
    [1, 2],
    [2, 1],
    [3, 1],
    [4, 1],
  ]);
  await engine.drain({ timeoutMs: 0 });
  await database.close();
}, 60_000);

test("an input whose claim a crash of the database lost is not overtaken by the next one of its session", async () => {
  const target = { url: server.url, schema: "unclaimed" };
  const engine = await createPostgresEngine(target);
  const database = await openEngineDatabase(target);
  const begun: unknown[] = [];
  const release = Promise.withResolvers<void>();
  await engine.start({
    run: async () => null,
    async dispatch(_, { input }) {
      begun.push(input);
      if (begun.length > 1) return null;
      await release.promise;
      throw storeUnavailable({ store: "The session store", reason: "it crashed", hint: "Start it." });
    },
  });
  const session = { agent: "a", instance_id: "i", session: "s" };
  const receipts = [];
  for (let input = 1; input <= 3; input += 1) receipts.push(await engine.admit({ ...session, input }));
  await expect.poll(() => begun.length).toBe(1);
  // A claim does not wait for the disk; a node that is back soon keeps its lease.
  await database.run("UPDATE $s.dispatches SET status = 'queued', attempts = 0 WHERE status = 'running'");
  release.resolve();
  for (const { dispatch_id } of receipts)
    expect(await engine.awaitDispatch(dispatch_id)).toMatchObject({ status: "completed", attempts: 1 });
  expect(begun).toEqual([1, 1, 2, 3]);
  await engine.drain({ timeoutMs: 0 });
  await database.close();
}, 60_000);
