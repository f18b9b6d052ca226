import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { setTimeout as sleep } from "node:timers/promises";
import pg from "pg";
import { afterAll, beforeAll, expect, onTestFinished, test } from "vitest";
import { campaignTest } from "../../testing/campaign.suite.ts";
import { postgresForTests } from "../../testing/postgres-for-tests.ts";
import { gate } from "../cases/engine-check.ts";
import type { Engine } from "../contract.ts";
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

/** Two attempts: the limit is met as soon as two wrong ones are counted. */
const limits = { attempts: 2, backoffMs: 1 };
const key = { agent: "a", instance_id: "one", session: "default" };
const script = new URL("testing/node-process.ts", import.meta.url);

async function startNode(schema: string): Promise<ChildProcess> {
  const child = fork(script, [JSON.stringify({ url: server.url, schema, limits })], { execArgv: [] });
  onTestFinished(() => void child.kill("SIGKILL"));
  await receive(child, "ready");
  return child;
}

async function receive(child: ChildProcess, text: string): Promise<void> {
  while ((await Promise.race([once(child, "message"), once(child, "close")]))[0] !== text)
    if (child.exitCode !== null || child.signalCode !== null) throw new Error("The node has ended.");
}

async function openEngine(schema: string): Promise<Engine> {
  const engine = await createPostgresEngine({ url: server.url, schema, limits });
  onTestFinished(() => engine.drain({ timeoutMs: 0 }));
  return engine;
}

const endLocks = () =>
  admin.query(
    "SELECT pg_terminate_backend(pid) FROM pg_locks WHERE locktype = 'advisory' AND pid <> pg_backend_pid() GROUP BY pid",
  );

const owner = async (schema: string) =>
  (await admin.query(`SELECT count(*) FROM "${schema}".shards WHERE node IS NOT NULL`)).rows[0];

test("work goes on when its node loses its connection, however often", async () => {
  const [engine, other] = [await openEngine("lost"), await openEngine("lost")];
  const begun: unknown[] = [];
  const done = gate();
  const handlers = {
    async dispatch({ attempt }: { readonly attempt: number }) {
      begun.push(attempt);
      await done.opened;
      return "done";
    },
    async run({ step }: { readonly step: (name: string, work: () => Promise<unknown>) => Promise<unknown> }) {
      return await step("long", async () => {
        begun.push("step");
        await done.opened;
        return "done";
      });
    },
  };
  await engine.start(handlers);
  await other.start(handlers);
  const { dispatch_id } = await engine.admit({ ...key, input: 1 });
  const { run_id } = await engine.startRun({ workflow: "w", payload: null });
  await expect.poll(() => begun.length).toBe(2);
  for (let time = 0; time < 5; time += 1) {
    await endLocks();
    await sleep(300);
    await expect.poll(() => owner("lost"), { timeout: 10_000 }).toEqual({ count: "256" });
  }
  done.open();
  expect(await engine.awaitDispatch(dispatch_id)).toMatchObject({ status: "completed" });
  expect(await engine.awaitRun(run_id)).toMatchObject({ status: "completed" });
});

test("work goes on when all connections end at once, as at a restart of the database, however often", async () => {
  const engine = await openEngine("restarted");
  const begun: unknown[] = [];
  const done = gate();
  await engine.start({
    async dispatch({ attempt }) {
      begun.push(attempt);
      await done.opened;
      return "done";
    },
    run: ({ step }) =>
      step("long", async () => {
        begun.push("step");
        await done.opened;
        return "done";
      }),
  });
  const { dispatch_id } = await engine.admit({ ...key, input: 1 });
  const { run_id } = await engine.startRun({ workflow: "w", payload: null });
  await expect.poll(() => begun.length).toBe(2);
  for (let time = 0; time < 5; time += 1) {
    await admin.query("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid()");
    await expect.poll(() => engine.cluster?.owns(key), { timeout: 10_000 }).toBe(true);
    await sleep(500);
  }
  done.open();
  expect(await engine.awaitDispatch(dispatch_id)).toMatchObject({ status: "completed", attempts: 1 });
  expect(await engine.awaitRun(run_id)).toMatchObject({ status: "completed" });
  expect(begun).toHaveLength(2);
}, 60_000);

campaignTest(
  "work that its frozen nodes lose is taken over, however often; these attempts do not count",
  async () => {
    const engine = await openEngine("frozen");
    const { dispatch_id } = await engine.admit({ ...key, input: "slow" });
    const { run_id } = await engine.startRun({ workflow: "w", payload: "slow" });
    const nodes = [await startNode("frozen")];
    const record = async () => await engine.getDispatch(dispatch_id);
    await expect.poll(async () => (await record())?.attempts).toBe(1);
    nodes.push(await startNode("frozen"));
    for (let time = 1; time <= 2; time += 1) {
      const attempts = (await record())?.attempts ?? 0;
      // Both own shards, so both are frozen in turn.
      for (const node of nodes) {
        node.kill("SIGSTOP");
        await sleep(4_000);
        node.kill("SIGCONT");
        await sleep(1_000);
      }
      await expect
        .poll(async () => (await record())?.attempts, { timeout: 10_000 })
        .toBeGreaterThan(attempts);
    }
    expect(await record()).toMatchObject({ status: "running" });
    expect((await engine.getRun(run_id))?.status).toBe("running");
  },
  60_000,
);

campaignTest(
  "an input and a run that end their process fail at the limit; those that only waited do not",
  async () => {
    const engine = await openEngine("killed");
    const idle = await engine.admit({ ...key, input: "idle" });
    const idleRun = await engine.startRun({ workflow: "w", payload: "idle" });
    const isIdle = async () =>
      (
        await admin.query(
          "SELECT EXISTS (SELECT 1 FROM killed.dispatches WHERE status = 'running' AND idle) AND EXISTS (SELECT 1 FROM killed.runs WHERE status = 'running' AND idle) AS idle",
        )
      ).rows[0].idle;
    const attempts = async () => (await engine.getDispatch(idle.dispatch_id))?.attempts;
    for (let time = 0; time < 6; time += 1) {
      const node = await startNode("killed");
      await expect.poll(attempts).toBe(time + 1);
      await expect.poll(isIdle, { timeout: 10_000 }).toBe(true);
      node.kill("SIGKILL");
      await once(node, "close");
    }
    expect((await engine.getDispatch(idle.dispatch_id))?.status).toBe("running");
    expect((await engine.getRun(idleRun.run_id))?.status).toBe("running");
    // It could begin in a process that the poison ends before it waits, which counts.
    expect(await engine.cancelDispatch(idle.dispatch_id)).toBe(true);
    const poison = await engine.admit({ ...key, instance_id: "two", input: "poison" });
    for (let time = 0; time < 2; time += 1) {
      const node = fork(script, [JSON.stringify({ url: server.url, schema: "killed", limits })], {
        execArgv: [],
      });
      await once(node, "close");
    }
    const ends: unknown[] = [];
    await engine.start({
      dispatch: async () => null,
      run: async () => null,
      onInputEnd: async ({ id, status, attempts }) => void ends.push([id, status, attempts]),
    });
    expect(await engine.awaitDispatch(poison.dispatch_id)).toMatchObject({
      status: "failed",
      attempts: 2,
      error: { type: "internal_error", message: "The process ended during the last attempt." },
    });
    expect(ends).toContainEqual([poison.dispatch_id, "failed", 2]);
    // It was running in a process that died, so another one ends it.
    expect(await engine.awaitDispatch(idle.dispatch_id)).toMatchObject({ status: "cancelled" });
  },
  60_000,
);
