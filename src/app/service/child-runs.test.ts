import { expect, test } from "vitest";
import type { RunRecord } from "../../protocol/run.ts";
import type { TestService } from "../../testing/test-service.ts";
import { eventsOf, openWorkflows } from "./testing/open-workflows.ts";

/** A schema that has no JSON Schema: an even number. */
const even = `const even = { "~standard": { version: 1, vendor: "test", validate: (value) =>
  value % 2 === 0 ? { value: value / 2 } : { issues: [{ message: "must be even", path: ["count"] }] } } };`;

const pair = {
  "src/workflows/child.ts": `import { defineWorkflow } from "kit";
export default defineWorkflow({
  payload: { type: "object", required: ["count"], properties: { count: { type: "number" } } },
  result: { type: "object", required: ["twice"] },
  run: async (ctx) => {
    if (ctx.payload.count === 13) throw new Error("bad luck");
    if (ctx.payload.count === 0) await ctx.waitFor("never");
    return ctx.payload.count < 0 ? { nothing: true } : { twice: 2 * ctx.payload.count };
  },
});`,
  "src/workflows/parent.ts": `import { defineWorkflow } from "kit";
import child from "./child.ts";
export default defineWorkflow({
  async run(ctx) {
    const first = await ctx.startRun(child, { count: 3 });
    const others = await Promise.all([ctx.run("child", { count: 4 }), ctx.run(child, { count: 5 })]);
    const failed = await ctx.run(child, { count: 13 }).catch((error) => error.code + ": " + error.message);
    const refused = await ctx.run(child, { count: "x" }).catch((error) => error.code);
    if (ctx.payload.wait) await ctx.waitFor("go");
    return { first: await first.result(), others, failed: failed.replace(/run_\\w+/, "run_…"), refused };
  },
});`,
  "src/workflows/over.ts": `export async function run(ctx) {
  const child = await ctx.startRun("child", { count: 0 });
  if (ctx.payload.await) return await child.result();
  await ctx.waitFor("go");
}`,
};

test("a workflow of defineWorkflow starts others and gets their results and errors", async () => {
  const { service, restart } = await openWorkflows(pair);
  const { run_id } = await service.startRun("parent", { wait: true });
  await waiting(service, run_id);
  const again = await restart();
  await again.engine.signal(run_id, { name: "go" });
  const record = await again.engine.awaitRun(run_id);
  expect(record).toMatchObject({
    status: "completed",
    result: {
      first: { twice: 6 },
      others: [{ twice: 8 }, { twice: 10 }],
      failed: 'internal_error: The run run_… of "child" failed: The workflow "child" failed.',
      refused: "invalid_request",
    },
  });
  // None was started twice by the replay, and each knows its parent.
  const { items } = await again.engine.listRuns({ workflow: "child" });
  expect(items.map(({ parent_run_id }) => parent_run_id)).toEqual(Array(4).fill(run_id));
});

test("the result of a workflow is checked by its result schema", async () => {
  const { service } = await openWorkflows(pair);
  await expect(service.app.run("child", { payload: { count: -1 } })).rejects.toMatchObject({
    code: "internal_error",
    message: expect.stringContaining('The result of the workflow "child" does not fit its schema'),
  });
});

async function waiting(service: TestService, runId: string): Promise<void> {
  await expect.poll(async () => (await service.engine.getRun(runId))?.status).toBe("waiting");
}

async function childOf(service: TestService): Promise<RunRecord | undefined> {
  return (await service.engine.listRuns({ workflow: "child" })).items[0];
}

test.each([true, false])("a child is cancelled with its parent (which awaits it: %s)", async (awaits) => {
  const { service } = await openWorkflows(pair);
  const { run_id } = await service.startRun("over", { await: awaits });
  await expect.poll(async () => (await childOf(service))?.status).toBe("waiting");
  const child = await childOf(service);
  if (!awaits) await waiting(service, run_id);
  expect(await service.engine.cancelRun(run_id)).toBe(true);
  expect(await service.engine.awaitRun(child?.run_id ?? "")).toMatchObject({ status: "cancelled" });
  expect(await service.engine.awaitRun(run_id)).toMatchObject({ status: "cancelled" });
});

test("an invalid signal is refused and the run continues to wait, also after a restart", async () => {
  const { service, restart } = await openWorkflows({
    "src/workflows/ask.ts": `import { defineWorkflow } from "kit";
${even}
const yes = { type: "object", required: ["approved"], properties: { approved: { type: "boolean" } } };
export default defineWorkflow({
  run: async (ctx) => [await ctx.waitFor("approve", { schema: yes, timeoutMs: 1e9 }), await ctx.waitFor("count", { schema: even })],
});`,
  });
  const { run_id } = await service.startRun("ask", {});
  await service.engine.signal(run_id, { name: "count", payload: 7 });
  await waiting(service, run_id);
  const wrong = { name: "approve", payload: { approved: "yes" } };
  const refusal = {
    code: "invalid_request",
    meta: { issues: [{ path: "payload.approved", message: expect.any(String) }] },
    message: expect.stringMatching(
      /^The payload of the signal "approve" does not fit the schema of the run's wait: approved/,
    ),
  };
  await expect(service.engine.signal(run_id, wrong)).rejects.toMatchObject(refusal);
  await expect(service.engine.signal(run_id, { name: "approve" })).rejects.toMatchObject({
    code: "invalid_request",
  });
  const again = await restart();
  await expect(again.engine.signal(run_id, wrong)).rejects.toMatchObject(refusal);
  await again.engine.signal(run_id, { name: "approve", payload: { approved: true } });
  await expect.poll(async () => (await again.engine.getRun(run_id))?.waiting_for?.[0]?.signal).toBe("count");
  await expect
    .poll(async () => (await eventsOf(again, run_id)).filter(({ type }) => type === "log"))
    .toEqual([
      expect.objectContaining({ level: "warning", message: expect.stringContaining("must be even") }),
    ]);
  await expect(again.engine.signal(run_id, { name: "count", payload: 9 })).rejects.toMatchObject({
    message:
      'The payload of the signal "count" does not fit the schema of the run\'s wait: count: must be even.',
  });
  await again.engine.signal(run_id, { name: "count", payload: 8 });
  expect(await again.engine.awaitRun(run_id)).toMatchObject({ result: [{ approved: true }, 4] });
});

test("a file with a contradictory or missing workflow is a problem with a reason", async () => {
  const { service } = await openWorkflows({
    "src/workflows/twice.ts": `import { defineWorkflow } from "kit";
export const payload = { type: "object" };
export default defineWorkflow({ run: async () => 1 });`,
    "src/workflows/none.ts": "export default { run: async () => 1 };",
  });
  expect(service.app.problems().map(({ message }) => message)).toEqual([
    expect.stringContaining("export default defineWorkflow("),
    expect.stringContaining("It exports `payload` beside a workflow as its default export"),
  ]);
});
