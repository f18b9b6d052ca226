import { expect, test } from "vitest";
import { postgresForTests } from "../../testing/postgres-for-tests.ts";
import { handlers } from "../cases/engine-check.ts";
import { createPostgresEngine } from "./create-postgres-engine.ts";
import { openEngineDatabase } from "./engine-database.ts";

const server = postgresForTests();

test("the state has each node's work, and each problem with advice", async () => {
  const target = { url: server.url, schema: "cluster_state" };
  const reader = await createPostgresEngine(target);
  expect(await reader.state?.()).toMatchObject({
    nodes: [],
    unowned_shards: 256,
    problems: [{ code: "unowned_shards", hint: "No node is working. Start one." }],
  });
  const held = Promise.withResolvers<unknown>();
  const one = await createPostgresEngine({ ...target, project: "shop" });
  await one.cluster?.announce("http://10.0.0.1:2024");
  await one.start(handlers({ dispatch: () => held.promise }));
  const two = await createPostgresEngine({ ...target, project: "shop" });
  await two.cluster?.announce("http://10.0.0.2:2024");
  await two.start(handlers({ dispatch: () => held.promise }));
  for (const input of ["at work", "waits"])
    await two.admit({ agent: "a", instance_id: "1", session: "default", input });
  await expect
    .poll(async () => {
      const state = await two.state?.();
      return [state?.nodes.map(({ shards }) => shards), state?.running_dispatches, state?.problems];
    })
    .toEqual([[128, 128], 1, []]);
  const state = await two.state?.();
  expect(state).toMatchObject({
    engine: "postgres",
    distributed: true,
    queued_dispatches: 1,
    unowned_shards: 0,
  });
  expect(Date.parse(String(state?.oldest_queued_at))).toBeLessThanOrEqual(Date.now());
  expect(state?.nodes.map(({ running, queued }) => [running, queued]).sort()).toEqual([
    [0, 0],
    [1, 1],
  ]);
  expect(state?.nodes).toMatchObject([
    {
      node: one.cluster?.node,
      address: "http://10.0.0.1:2024",
      state: "working",
      project: "shop",
      is_this: false,
    },
    {
      node: two.cluster?.node,
      address: "http://10.0.0.2:2024",
      state: "working",
      project: "shop",
      is_this: true,
    },
  ]);
  for (const { beat_age_ms, clock_ahead_ms } of state?.nodes ?? []) {
    expect(beat_age_ms).toBeLessThan(3_000);
    expect(Math.abs(Number(clock_ahead_ms))).toBeLessThan(5_000);
  }

  const database = await openEngineDatabase(target);
  // A node of another project with every problem that a node can report; its last heartbeat was two seconds ago.
  await database.run(
    `INSERT INTO $s.nodes (node, backend, beat, started_at, version, host, project, clock_ahead_ms, news_age_ms)
     SELECT 'ghost', min(pid), clock_timestamp() - interval '1500 ms', now(), '0.0.1', 'elsewhere', 'billing', -3600000, 60000
     FROM pg_stat_activity WHERE usename = current_user`,
  );
  // A busy machine can delay the heartbeats of the two working nodes, too, and take their shards.
  const { problems: all = [] } = (await reader.state?.()) ?? {};
  const problems = all.filter(({ code, node = "ghost" }) => node === "ghost" && code !== "unowned_shards");
  expect(problems.map(({ code, node }) => [code, node])).toEqual([
    ["several_versions", undefined],
    ["several_projects", undefined],
    ["silent_node", "ghost"],
    ["clock_skew", "ghost"],
    ["no_address", "ghost"],
    ["no_notifications", "ghost"],
  ]);
  expect(problems[1]?.message).toContain("shop (2), billing (1)");
  expect(problems[3]?.message).toContain("60 min behind the database's");
  for (const { hint } of problems) expect(hint).toMatch(/\w/);

  for (const [address, isProblem] of [
    ["http://127.0.0.1:2024", true],
    ["http://localhost:2024/kit", true],
    ["http://[::1]:2024", true],
    ["http://127.example:2024", false],
    ["http://10.0.0.1:2024", false],
  ] as const) {
    await one.cluster?.announce(address);
    const { problems: found = [] } = (await reader.state?.()) ?? {};
    const codes = found.filter(({ node }) => node === one.cluster?.node).map(({ code }) => code);
    expect(codes.includes("no_address")).toBe(isProblem);
  }
  held.resolve("done");
  await Promise.all([one, two, reader].map((engine) => engine.drain({ timeoutMs: 1_000 })));
  await database.close();
});
