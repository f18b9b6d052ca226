import pg from "pg";
import { afterAll, beforeAll, expect, test } from "vitest";
import { postgresForTests } from "../../testing/postgres-for-tests.ts";
import { gate } from "../cases/engine-check.ts";
import { createPostgresEngine } from "./create-postgres-engine.ts";

const server = postgresForTests();
let admin: pg.Pool;

beforeAll(() => {
  admin = new pg.Pool({ connectionString: server.url });
  admin.on("error", () => undefined);
});
afterAll(async () => {
  await admin?.end();
});

test("an input whose node has lost and regained its shard is done before later inputs, however long its old attempt runs", async () => {
  const engine = await createPostgresEngine({ url: server.url, schema: "hands", limits: { backoffMs: 1 } });
  const begun: string[] = [];
  const [first, ended] = [gate(), gate()];
  await engine.start({
    async dispatch({ fence }, { input }) {
      begun.push(`${input}`);
      if (begun.length > 1) return fence;
      first.open();
      // The work ignores its signal, as a model call or a command can.
      await ended.opened;
      return fence;
    },
    run: async () => null,
  });
  const key = { agent: "a", instance_id: "one", session: "default" };
  const ids: string[] = [];
  for (const input of ["one", "two", "three"]) ids.push((await engine.admit({ ...key, input })).dispatch_id);
  await first.opened;
  const fence = engine.cluster?.fence(key) ?? 0;
  // As another node does that takes the shards and dies.
  await admin.query("UPDATE hands.shards SET fence = fence + 1, node = 'another'");
  await admin.query(
    "SELECT pg_terminate_backend(pid) FROM pg_locks WHERE locktype = 'advisory' AND pid <> pg_backend_pid() GROUP BY pid",
  );
  await expect.poll(() => engine.cluster?.fence(key)).toBeGreaterThan(fence);
  // The node has requeued its input, and polls again whenever an input is queued.
  await expect.poll(async () => (await engine.getDispatch(ids[0] ?? ""))?.status).toBe("queued");
  ids.push((await engine.admit({ ...key, input: "four" })).dispatch_id);
  ended.open();
  for (const id of ids) expect(await engine.awaitDispatch(id)).toMatchObject({ status: "completed" });
  expect(begun).toEqual(["one", "one", "two", "three", "four"]);
  await engine.drain({ timeoutMs: 0 });
});
