import { expect, test } from "vitest";
import { serveForTests } from "../testing/serve-for-tests.ts";

const served = serveForTests({
  authorize: ({ action, workflow, instance }) => {
    if (workflow === "waiting" || instance === "other") return !/\.(cancel|retry)$/.test(action);
    return workflow !== "strict" || action !== "run.read";
  },
});

const post = async (path: string, body: unknown) => await served.send(path, { body });
const start = async (workflow: string, body: unknown = {}): Promise<string> =>
  (await post(`/workflows/${workflow}`, body)).body.run_id;

test("runs are cancelled and retried by a filter: those that match and that the sender may change", async () => {
  const failed = [await start("failing"), await start("failing")];
  const waits = await start("waiting");
  for (const id of failed) await served.service.engine.awaitRun(id);
  const first = (await post("/runs/retry", { workflow: "failing", limit: 1 })).body;
  expect(first).toEqual({ retried: [failed[1]], failed: [], next_cursor: expect.any(String) });
  const { next_cursor: cursor } = first;
  expect((await post("/runs/retry", { workflow: "failing", limit: 1, cursor })).body.retried).toEqual([
    failed[0],
  ]);
  for (const id of failed) await served.service.engine.awaitRun(id);
  // Not permitted: it stays, and the reply does not name it.
  expect((await post("/runs/cancel", { workflow: "waiting" })).body).toEqual({ cancelled: [], failed: [] });
  const slow = await start("slow");
  expect((await post("/runs/cancel", { since: "2026-01-01" })).body).toEqual({
    cancelled: [slow],
    failed: [],
  });
  expect((await served.send(`/runs/${waits}`)).body.ended_at).toBeUndefined();
});

test("named runs that cannot be changed are failures with their reasons, and do not stop the others", async () => {
  const [slow, ended, waits] = [await start("slow"), await start("failing"), await start("waiting")];
  const hidden = await start("strict", { n: 1 });
  await served.service.engine.awaitRun(ended);
  const { body } = await post("/runs/cancel", { ids: [ended, waits, "run_none", slow, slow] });
  expect(body.cancelled).toEqual([slow]);
  const types = body.failed.map(({ run_id, error }: { run_id: string; error: { type: string } }) => [
    run_id,
    error.type,
  ]);
  expect(types.toSorted()).toEqual(
    [
      [ended, "conflict"],
      [waits, "forbidden"],
      ["run_none", "run_not_found"],
    ].toSorted(),
  );
  const retried = (await post("/runs/retry", { ids: [hidden, ended] })).body;
  expect(retried.retried).toEqual([ended]);
});

test("dispatches are cancelled by a filter or by ids", async () => {
  const dispatch = async (instance: string): Promise<string> =>
    (await post(`/agents/echo/${instance}/dispatch`, { input: "hold" })).body.dispatch_id;
  const [one, other] = [await dispatch("many"), await dispatch("other")];
  expect((await post("/dispatches/cancel", { agent: "echo", search: "HOLD" })).body).toEqual({
    cancelled: [one],
    failed: [],
  });
  await served.service.engine.awaitDispatch(one);
  expect((await post("/dispatches/cancel", { ids: [other, one] })).body).toMatchObject({
    cancelled: [],
    failed: expect.arrayContaining([
      { dispatch_id: other, error: { type: "forbidden", message: expect.any(String) } },
      { dispatch_id: one, error: { type: "conflict", message: "It had ended already." } },
    ]),
  });
  await served.service.engine.cancelDispatch(other);
});

test("a request must say what it cancels, in one way", async () => {
  const wrong = [
    {},
    { limit: 10 },
    { ids: [] },
    { ids: ["run_1"], workflow: "slow" },
    { ids: Array(1_001).fill("run_1") },
    { status: "failed" },
    { since: "yesterday" },
    { search: "x", older: true },
  ];
  for (const body of wrong) expect([body, (await post("/runs/cancel", body)).status]).toEqual([body, 400]);
  for (const body of wrong)
    expect([body, (await post("/dispatches/cancel", body)).status]).toEqual([body, 400]);
});
