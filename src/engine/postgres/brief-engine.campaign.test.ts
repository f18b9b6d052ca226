import { setTimeout } from "node:timers/promises";
import { Client } from "pg";
import { afterEach, beforeEach, expect, test } from "vitest";
import { KitError } from "../../base/kit-error.ts";
import type { ApprovalRequest } from "../../protocol/approval.ts";
import { postgresForTests } from "../../testing/postgres-for-tests.ts";
import { gate, handlers, sessionKey, untilAborted } from "../cases/engine-check.ts";
import type { Engine, EngineHandlers } from "../contract.ts";
import type { BriefEngine } from "./asked-work.ts";
import { createBriefEngine, createPostgresEngine } from "./create-postgres-engine.ts";

const server = postgresForTests();
let schema = "";
let count = 0;
const opened: Engine[] = [];

beforeEach(() => {
  count += 1;
  schema = `brief_${count}`;
});

afterEach(async () => {
  await Promise.all(opened.splice(0).map((engine) => engine.drain({ timeoutMs: 0 })));
});

/** One invocation of a function, whose engine works until it is drained. */
async function invoke(some: Partial<EngineHandlers> = {}, limits = {}): Promise<BriefEngine> {
  const engine = await createBriefEngine({ url: server.url, schema, limits });
  opened.push(engine);
  await engine.start(handlers(some));
  return engine;
}

async function ask<Row>(sql: string): Promise<readonly Row[]> {
  const client = new Client({ connectionString: server.url });
  await client.connect();
  try {
    return (await client.query(sql.replaceAll("$s", `"${schema}"`))).rows;
  } finally {
    await client.end();
  }
}

/** Counts the locks of shards, the nodes, and the other connections. */
async function readHoldings(): Promise<object> {
  const [locks, nodes, connections] = await Promise.all([
    ask("SELECT 1 FROM pg_locks WHERE locktype = 'advisory'"),
    ask("SELECT 1 FROM $s.nodes"),
    ask(
      "SELECT 1 FROM pg_stat_activity WHERE usename = 'kit' AND backend_type = 'client backend' AND query NOT LIKE 'SELECT 1 FROM %'",
    ),
  ]);
  return { locks: locks.length, nodes: nodes.length, connections: connections.length };
}

const input = { ...sessionKey, input: "now" };

test("an invocation works on the input that it has accepted, and holds nothing in the database once it is drained", async () => {
  const engine = await invoke({ dispatch: async () => "done" });
  const { dispatch_id } = await engine.admit(input);
  await engine.atRest();
  expect(await engine.getDispatch(dispatch_id)).toMatchObject({ status: "completed", result: "done" });
  await engine.drain({ timeoutMs: 0 });
  await expect.poll(readHoldings).toEqual({ locks: 0, nodes: 0, connections: 0 });
});

test("an invocation that only reads takes no shard", async () => {
  const engine = await invoke();
  expect(await engine.listDispatches()).toEqual({ items: [] });
  await engine.atRest();
  await expect.poll(readHoldings).toMatchObject({ locks: 0, nodes: 0 });
});

test("a cluster of functions has no problem between their invocations; a cluster of servers has one after the last server", async () => {
  const call = await invoke({ dispatch: async () => "done" });
  await call.admit(input);
  await call.atRest();
  await call.drain({ timeoutMs: 0 });
  const reader = await createPostgresEngine({ url: server.url, schema });
  opened.push(reader);
  expect(await reader.state?.()).toMatchObject({ nodes: [], unowned_shards: 0, problems: [] });
  const machine = await createPostgresEngine({ url: server.url, schema });
  await machine.start(handlers({}));
  await machine.drain({ timeoutMs: 0 });
  expect((await reader.state?.())?.problems).toMatchObject([{ code: "unowned_shards" }]);
});

test("the scheduled invocation resumes work that other processes have left, and a request does not", async () => {
  const accepting = await createBriefEngine({ url: server.url, schema });
  const { dispatch_id } = await accepting.admit({ ...input, instance_id: "left" });
  await accepting.drain({ timeoutMs: 0 });
  const request = await invoke({ dispatch: async () => "by a request" });
  await request.admit(input);
  await request.atRest();
  expect(await request.getDispatch(dispatch_id)).toMatchObject({ status: "queued" });
  const scheduled = await invoke({ dispatch: async () => "by the scheduled call" });
  await scheduled.takeDue();
  await scheduled.atRest();
  expect(await scheduled.getDispatch(dispatch_id)).toMatchObject({ result: "by the scheduled call" });
});

test("an input that takes longer is handed over without counting an attempt", async () => {
  const attempts: number[] = [];
  const first = await invoke({
    async dispatch(context) {
      attempts.push(context.attempt);
      return await untilAborted(context);
    },
  });
  const { dispatch_id } = await first.admit(input);
  await expect.poll(() => attempts).toEqual([1]);
  await first.drain({ timeoutMs: 50 });
  await expect.poll(readHoldings).toEqual({ locks: 0, nodes: 0, connections: 0 });
  const second = await invoke({
    async dispatch(context) {
      attempts.push(context.attempt);
      return "done";
    },
  });
  await second.takeDue();
  await second.atRest();
  expect(await second.getDispatch(dispatch_id)).toMatchObject({ status: "completed", attempts: 1 });
  expect(attempts).toEqual([1, 1]);
});

test("later invocations continue a run: after its sleep, after a signal, and at the step before which a drain has requeued it", async () => {
  const steps: string[] = [];
  const run: EngineHandlers["run"] = async (context) => {
    await context.step("one", () => void steps.push("one"));
    await context.sleep(1_300);
    await context.waitFor("go");
    await context.step("two", async () => {
      steps.push("two");
      await opening.opened;
    });
    await context.step("three", () => void steps.push("three"));
    return "end";
  };
  const opening = gate();
  const first = await invoke({ run });
  const { run_id } = await first.startRun({ workflow: "w", payload: {} });
  await first.atRest();
  expect(await first.getRun(run_id)).toMatchObject({ status: "waiting" });
  await first.drain({ timeoutMs: 0 });
  await setTimeout(400);
  const second = await invoke({ run });
  await second.takeDue();
  await second.atRest();
  expect(await second.getRun(run_id)).toMatchObject({ status: "waiting" });
  await second.drain({ timeoutMs: 0 });
  const third = await invoke({ run });
  await third.signal(run_id, { name: "go" });
  await expect.poll(() => steps).toEqual(["one", "two"]);
  const drained = third.drain({ timeoutMs: 5_000 });
  opening.open();
  await drained;
  expect(steps).toEqual(["one", "two"]);
  const fourth = await invoke({ run });
  await fourth.takeDue();
  await fourth.atRest();
  expect(await fourth.getRun(run_id)).toMatchObject({ status: "completed", result: "end" });
  expect(steps).toEqual(["one", "two", "three"]);
});

test("two invocations for one instance take turns: a prompt waits until the other invocation has released the instance", async () => {
  const order: string[] = [];
  const working = gate();
  const first = await invoke();
  const prompt = first.inLine(sessionKey, async () => {
    order.push("first");
    await working.opened;
  });
  await expect.poll(() => order).toEqual(["first"]);
  const second = await invoke();
  const other = second.inLine(sessionKey, async () => void order.push("second"));
  await setTimeout(300);
  expect(order).toEqual(["first"]);
  working.open();
  await Promise.all([prompt, other]);
  expect(order).toEqual(["first", "second"]);
});

test("next to servers, functions only accept work, and the servers do it", async () => {
  const lasting = await createPostgresEngine({ url: server.url, schema });
  opened.push(lasting);
  await lasting.start(handlers({ dispatch: async () => "by the server" }));
  const before = await ask<{ count: string }>("SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'");
  const engine = await invoke({ dispatch: async () => "by the function" });
  const { dispatch_id } = await engine.admit(input);
  expect(await engine.awaitDispatch(dispatch_id)).toMatchObject({ result: "by the server" });
  await setTimeout(500);
  expect(await ask("SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'")).toEqual(before);
});

test("a schedule starts its run in the scheduled invocation", async () => {
  const ran: unknown[] = [];
  const run: EngineHandlers["run"] = async (_, { payload }) => void ran.push(payload);
  const first = await invoke({ run });
  await first.putSchedule({ name: "nightly", workflow: "w", cron: "0 0 1 1 *", payload: 7 });
  await ask("UPDATE $s.schedules SET next_at = 1000");
  await setTimeout(300);
  await first.atRest();
  expect(ran).toEqual([]);
  await first.drain({ timeoutMs: 0 });
  const scheduled = await invoke({ run });
  await scheduled.takeDue();
  await scheduled.atRest();
  expect(ran).toEqual([7]);
});

test("the scheduled invocation takes only as much work as it can begin", async () => {
  const accepting = await createBriefEngine({ url: server.url, schema });
  for (const id of ["a", "b", "c", "d", "e", "f"]) await accepting.admit({ ...input, instance_id: id });
  await accepting.drain({ timeoutMs: 0 });
  const working = gate();
  let begun = 0;
  const dispatch = async (): Promise<void> => {
    begun += 1;
    await working.opened;
  };
  const one = await invoke({ dispatch }, { running: 2 });
  await one.takeDue();
  const other = await invoke({ dispatch }, { running: 2 });
  await other.takeDue();
  await expect.poll(() => begun).toBe(4);
  working.open();
  await Promise.all([one.atRest(), other.atRest()]);
  expect(begun).toBe(6);
});

test("a tool call that waits for a decision is listed and decided while no function runs", async () => {
  const request: ApprovalRequest = {
    approval_id: "approval-1",
    ...sessionKey,
    operation_id: "op-1",
    tool_call_id: "call-1",
    tool: "bash",
    args: {},
    requested_at: "2026-11-23T00:00:00.000Z",
  };
  const first = await invoke();
  const { dispatch_id } = await first.admit({ ...sessionKey, input: 1 });
  const call = { request, work: { owned: sessionKey, fence: 1, resumes: dispatch_id } };
  const wait = await first.waitingCalls?.add(call, () => undefined);
  wait?.leave();
  await first.drain({ timeoutMs: 0 });
  const second = await invoke();
  expect(await second.waitingCalls?.list()).toMatchObject([{ approval_id: "approval-1" }]);
  const decision = { approved: true };
  expect(await second.waitingCalls?.decide("approval-1", decision)).toMatchObject({ isFirst: true });
  await second.drain({ timeoutMs: 0 });
  const third = await invoke();
  expect((await third.waitingCalls?.add(call, () => undefined))?.decision).toEqual(decision);
  expect(await third.waitingCalls?.list()).toEqual([]);
});

test("the scheduled invocation tries runs again that wait because of their code", async () => {
  const problem = new KitError({ code: "workflow_not_found", message: "Gone." });
  const broken = await invoke({ run: async ({ hold }) => Promise.reject(hold(problem)) });
  const { run_id } = await broken.startRun({ workflow: "w", payload: 1 });
  await broken.takeDue();
  await expect.poll(async () => (await broken.getRun(run_id))?.problem?.message).toBe("Gone.");
  await broken.drain({ timeoutMs: 0 });
  const right = await invoke({ run: async () => "done" });
  await right.takeDue();
  expect(await right.awaitRun(run_id)).toMatchObject({ status: "completed", result: "done" });
});
