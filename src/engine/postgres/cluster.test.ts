import { afterAll, beforeAll, expect, onTestFinished, test, vi } from "vitest";
import { type PostgresServer, startPostgres } from "../../testing/postgres-server.ts";
import type { EngineCluster } from "../cluster.ts";
import type { Engine } from "../contract.ts";
import { createPostgresEngine } from "./create-postgres-engine.ts";

let server: PostgresServer;

beforeAll(async () => {
  server = await startPostgres();
});

afterAll(async () => {
  await server?.stop();
});

async function openNode(
  schema: string,
  isMute = false,
): Promise<Engine & { readonly cluster: EngineCluster }> {
  const engine = await createPostgresEngine({ url: server.url, schema, isMute });
  await engine.start({ dispatch: async () => null, run: async () => null });
  onTestFinished(() => engine.drain({ timeoutMs: 0 }));
  const { cluster } = engine;
  if (cluster === undefined) throw new Error("No cluster.");
  return { ...engine, cluster };
}

const owned = Array.from({ length: 32 }, (_, number) => ({ agent: "a", instance_id: `i${number}` }));

function request(number: number) {
  return {
    approval_id: `approval_${number}`,
    agent: "payer",
    instance_id: `i${number}`,
    session: "default",
    operation_id: "op_1",
    tool_call_id: "call_1",
    tool: "pay",
    args: { euros: number },
    requested_at: `2026-01-01T00:00:0${number}.000Z`,
  };
}

test("nodes agree on the owner of each instance, its address, and a generated secret", async () => {
  const [one, two] = [await openNode("map"), await openNode("map")];
  await one.cluster.announce("http://10.0.0.1:2024");
  await two.cluster.announce("http://10.0.0.2:2024");
  await vi.waitFor(async () => {
    const owners = await Promise.all(owned.map((each) => one.cluster.owner(each, { fresh: true })));
    expect(new Set(owners.map((owner) => owner?.address))).toEqual(
      new Set(["http://10.0.0.1:2024", "http://10.0.0.2:2024"]),
    );
    expect(owners).toEqual(await Promise.all(owned.map((each) => two.cluster.owner(each, { fresh: true }))));
  }, 30_000);
  for (const each of owned) {
    const owner = await two.cluster.owner(each);
    expect(owner?.node).toBe((one.cluster.owns(each) ? one : two).cluster.node);
  }
  expect(await one.cluster.secret()).toBe(await two.cluster.secret());
  expect(await one.cluster.secret()).toMatch(/^[\w-]{43}$/);
});

test("the instances of a node that has left belong to other nodes a moment later", async () => {
  const [one, two] = [await openNode("left"), await openNode("left")];
  await vi.waitFor(async () => expect(owned.some((each) => two.cluster.owns(each))).toBe(true), 30_000);
  await two.drain({ timeoutMs: 0 });
  await vi.waitFor(() => expect(owned.every((each) => one.cluster.owns(each))).toBe(true), 30_000);
});

test.for([false, true])(
  "a tool call that waits on one node is listed and decided on another, once (without news: %s)",
  async (isMute) => {
    const schema = `calls_${isMute}`;
    const [one, two] = [await openNode(schema, isMute), await openNode(schema, isMute)];
    const decided = vi.fn();
    one.cluster.waitingCalls.onDecided(decided);
    expect(await one.cluster.waitingCalls.add(request(2))).toBeUndefined();
    expect(await one.cluster.waitingCalls.add(request(1))).toBeUndefined();
    const calls = two.cluster.waitingCalls;
    expect(await calls.list({ agent: "payer" })).toEqual([request(1), request(2)]);
    expect(await calls.list({ instance_id: "i2" })).toEqual([request(2)]);
    expect(await calls.decide("approval_1", { approved: true }, { instance_id: "i2" })).toBe(false);
    const answers = await Promise.all(
      [one, two].map(({ cluster }, number) =>
        cluster.waitingCalls.decide("approval_1", { approved: number === 0 }, { instance_id: "i1" }),
      ),
    );
    expect(answers.toSorted()).toEqual([false, true]);
    await expect.poll(() => decided.mock.calls).toContainEqual(["approval_1", { approved: answers[0] }]);
    expect(await calls.list({})).toEqual([request(2)]);
    expect(await one.cluster.waitingCalls.remove("approval_1")).toEqual({ approved: answers[0] });
  },
);

test("a decision that its node did not get before it died is kept for the node that resumes the work", async () => {
  const [one, two] = [await openNode("again"), await openNode("again")];
  await one.cluster.waitingCalls.add(request(3));
  expect(await two.cluster.waitingCalls.decide("approval_3", { approved: true, by: "ops" }, {})).toBe(true);
  await one.cluster.waitingCalls.withdraw("approval_3");
  expect(await two.cluster.waitingCalls.add(request(3))).toEqual({ approved: true, by: "ops" });
  expect(await two.cluster.waitingCalls.add(request(3))).toBeUndefined();
});

test("the tool calls of a dead node are neither listed nor decided until another node resumes the work", async () => {
  const [one, two] = [await openNode("dead"), await openNode("dead")];
  await one.cluster.waitingCalls.add(request(4));
  await one.drain({ timeoutMs: 0 });
  expect(await two.cluster.waitingCalls.list({})).toEqual([]);
  expect(await two.cluster.waitingCalls.decide("approval_4", { approved: true }, {})).toBe(false);
  await two.cluster.waitingCalls.add(request(4));
  expect(await two.cluster.waitingCalls.list({})).toEqual([request(4)]);
});

test("a tool call of work that was cancelled without an owner is no longer listed; others are", async () => {
  const one = await createPostgresEngine({ url: server.url, schema: "cancelled" });
  const { agent, instance_id, session } = request(5);
  const begun = Promise.withResolvers<void>();
  await one.start({
    run: async () => null,
    dispatch: async ({ signal }) => {
      begun.resolve();
      await new Promise((_, reject) => signal.addEventListener("abort", () => reject(signal.reason)));
    },
  });
  const first = await one.admit({ agent, instance_id, session, input: 1 });
  const later = await one.admit({ agent, instance_id, session, input: 2 });
  await begun.promise;
  await one.drain({ timeoutMs: 0 });
  const two = await createPostgresEngine({ url: server.url, schema: "cancelled" });
  onTestFinished(() => two.drain({ timeoutMs: 0 }));
  const run = await two.startRun({ workflow: "w", payload: {} });
  const waits = [request(5), { ...request(5), approval_id: "approval_6", session: "other" }];
  const ofRun = { ...request(7), run_id: run.run_id };
  const calls = two.cluster?.waitingCalls;
  for (const call of [...waits, ofRun]) {
    await calls?.add(call);
    await calls?.leave(call.approval_id);
  }
  await two.cancelDispatch(later.dispatch_id);
  expect(await calls?.list({})).toHaveLength(3);
  await two.cancelDispatch(first.dispatch_id);
  expect(await calls?.list({})).toEqual([waits[1], ofRun]);
  await two.cancelRun(run.run_id);
  expect(await calls?.list({})).toEqual([waits[1]]);
});

test("a new node takes no instance for which a caller waits", async () => {
  const one = await openNode("attached");
  const work = Promise.withResolvers<string>();
  const lost: unknown[] = [];
  const answers = owned.map((each) =>
    one.inLine({ ...each, session: "default" }, async ({ signal }) => {
      signal.addEventListener("abort", () => lost.push(signal.reason));
      return await work.promise;
    }),
  );
  const two = await openNode("attached");
  const shares = (): number =>
    Array.from({ length: 64 }, (_, n) => ({ run_id: `r${n}` })).filter((each) => two.cluster.owns(each))
      .length;
  await vi.waitFor(() => expect(shares()).toBeGreaterThan(10), 30_000);
  expect(owned.filter((each) => two.cluster.owns(each))).toEqual([]);
  work.resolve("done");
  expect(await Promise.all(answers)).toEqual(owned.map(() => "done"));
  expect(lost).toEqual([]);
});
