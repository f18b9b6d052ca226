import { expect, onTestFinished, test, vi } from "vitest";
import { postgresForTests } from "../../testing/postgres-for-tests.ts";
import { untilAborted } from "../cases/engine-check.ts";
import type { EngineCluster } from "../cluster.ts";
import type { Engine } from "../contract.ts";
import { createPostgresEngine } from "./create-postgres-engine.ts";
import { openEngineDatabase } from "./engine-database.ts";

const server = postgresForTests();

async function openNode(
  schema: string,
  isMute = false,
): Promise<Engine & { readonly cluster: EngineCluster }> {
  const engine = await createPostgresEngine({ url: server.url, schema, isMute });
  await engine.start({ dispatch: async () => null, run: untilAborted });
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
    const wait = await one.waitingCalls?.add({ request: request(1) }, decided);
    await one.waitingCalls?.add({ request: request(2) }, () => undefined);
    expect(await two.waitingCalls?.list()).toEqual([request(1), request(2)]);
    const answers = await Promise.all(
      [one, two].map(({ waitingCalls }, number) =>
        waitingCalls?.decide("approval_1", { approved: number === 0 }, { instance_id: "i1" }),
      ),
    );
    expect(answers.filter((answer) => answer?.isFirst)).toHaveLength(1);
    const counted = answers[0]?.decision;
    await expect.poll(() => decided.mock.calls).toContainEqual([counted]);
    expect(await two.waitingCalls?.list({})).toEqual([request(2)]);
    expect(await wait?.settle({ approved: false, reason: "Late." })).toEqual(counted);
  },
);

test("a call outside of the engine's work ends with its node", async () => {
  const [one, two] = [await openNode("dead"), await openNode("dead")];
  await one.waitingCalls?.add({ request: request(4) }, () => undefined);
  expect(await two.waitingCalls?.list()).toEqual([request(4)]);
  await one.drain({ timeoutMs: 0 });
  expect(await two.waitingCalls?.list()).toEqual([]);
  expect(await two.waitingCalls?.decide("approval_4", { approved: true })).toBeUndefined();
});

test("a node that has lost its lease neither takes a waiting call back nor ends it", async () => {
  const one = await openNode("lost");
  const owned = { agent: "payer", instance_id: "i5" };
  await expect.poll(() => one.cluster.fence(owned)).toBeGreaterThan(0);
  const fence = one.cluster.fence(owned);
  const { run_id } = await one.startRun({ workflow: "w", payload: {} });
  const call = (by: number) => ({ request: request(5), work: { owned, fence: by, resumes: run_id } });
  const old = await one.waitingCalls?.add(call(fence), () => undefined);
  await one.waitingCalls?.add(call(fence + 1), () => undefined);
  await expect(one.waitingCalls?.add(call(fence), () => undefined)).rejects.toMatchObject({
    code: "lease_lost",
  });
  await expect(old?.settle({ approved: false })).rejects.toMatchObject({ code: "lease_lost" });
  await old?.withdraw();
  const again = await one.waitingCalls?.add(call(fence + 1), () => undefined);
  expect(again?.decision).toBeUndefined();
  expect(await one.waitingCalls?.list()).toHaveLength(1);
});

test("a node of an earlier version uses the same rows", async () => {
  const one = await openNode("earlier");
  const database = await openEngineDatabase({ url: server.url, schema: "earlier" });
  onTestFinished(() => database.close());
  const { node } = one.cluster;
  await database.run(
    `INSERT INTO $s.approvals AS old (approval_id, agent, instance_id, session, requested_at, node, request, written_at)
     VALUES ('approval_6', 'payer', 'i6', 'default', '2026-01-01T00:00:06.000Z', '${node}', '${JSON.stringify(request(6))}', 1)
     ON CONFLICT (approval_id) DO UPDATE SET node = excluded.node, request = excluded.request RETURNING decision`,
  );
  expect(await one.waitingCalls?.list()).toEqual([request(6)]);
  expect(await one.waitingCalls?.decide("approval_6", { approved: true })).toMatchObject({ isFirst: true });
  const rows = await database.rows(
    `DELETE FROM $s.approvals WHERE approval_id = 'approval_6' AND node = '${node}' RETURNING decision`,
  );
  expect(rows).toEqual([{ decision: '{"approved":true}' }]);
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
