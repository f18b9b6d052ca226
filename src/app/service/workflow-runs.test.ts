import { readFile, rename, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { systemClock } from "../../base/clock.ts";
import { KitError } from "../../base/kit-error.ts";
import { createEmbeddedEngine } from "../../engine/embedded/create-embedded-engine.ts";
import { runStream } from "../../protocol/session-name.ts";
import { createScriptedModel } from "../../testing/scripted-model.ts";
import { createTemporaryRepository } from "../../testing/temporary-repository.ts";
import { openTestParts } from "../../testing/test-app.ts";
import { createTestService, type TestService } from "../../testing/test-service.ts";
import { createService } from "./create-service.ts";
import { eventsOf, openWorkflows, waiting } from "./testing/open-workflows.ts";

test("a run resumes after a restart, and finished steps are not repeated", async () => {
  const { service, root, restart } = await openWorkflows(
    {
      "src/workflows/order.ts": `import { appendFile } from "node:fs/promises";
import writer from "../agents/writer.ts";
const when = {
  "~standard": {
    version: 1,
    vendor: "test",
    validate: (value) => typeof value?.day === "string" ? { value: new Date(value.day) } : { issues: [{ message: "no day" }] },
  },
};
export async function run(ctx) {
  const at = await ctx.now();
  const id = await ctx.uuid();
  const paid = await ctx.step("charge", async ({ idempotencyKey }) => {
    await appendFile(ctx.payload.log, idempotencyKey + "\\n");
    return { amount: 5 };
  });
  const agent = await ctx.init(writer);
  const session = agent.session();
  const { result, text } = await session.prompt("When?", { result: when });
  ctx.log.info("waiting");
  const answer = await ctx.waitFor("approve");
  const { text: last } = await session.prompt("And now?");
  return { at, id, paid, day: result.toISOString(), isDate: result instanceof Date, text, answer, last };
}`,
    },
    ({ prompt }) => ({ text: JSON.stringify(prompt).includes("And now?") ? "Now." : '{"day":"2026-01-02"}' }),
  );
  const log = join(root, "charges.log");
  const { run_id } = await service.startRun("order", { log });
  await waiting(service, run_id);
  const prompts: string[] = [];
  const second = await restart(({ prompt }) => {
    prompts.push(JSON.stringify(prompt.at(-1)));
    return { text: "Now." };
  });
  await second.engine.signal(run_id, { name: "approve", payload: { by: "Ada" } });
  const record = await second.engine.awaitRun(run_id);
  expect(record).toMatchObject({
    status: "completed",
    result: {
      paid: { amount: 5 },
      day: "2026-01-02T00:00:00.000Z",
      isDate: true,
      answer: { by: "Ada" },
      last: "Now.",
    },
  });
  expect((await readFile(log, "utf8")).split("\n")).toEqual([`${run_id}:3`, ""]);
  expect(prompts).toHaveLength(1);
  expect(prompts[0]).toContain("And now?");
  const types = (await eventsOf(second, run_id)).map(({ type }) => type);
  for (const once of ["run_start", "step_start", "step_end", "run_end"]) {
    expect(types.filter((type) => type === once)).toHaveLength(1);
  }
  expect(types.filter((type) => type === "operation")).toHaveLength(2);
  expect(types[0]).toBe("run_start");
  expect(types.at(-1)).toBe("run_end");
});

test("a run whose first events were lost emits its start again, with the original time", async () => {
  const { service, root, restart } = await openWorkflows({
    "src/workflows/order.ts": `export async function run(ctx) {
  await ctx.step("first", () => 1);
  ctx.log.info("waiting");
  return await ctx.waitFor("approve");
}`,
  });
  const { run_id } = await service.startRun("order", {});
  await waiting(service, run_id);
  await service.close();
  // As a kill leaves it before the log is written.
  for (const end of ["", "-wal", "-shm"]) await rm(join(root, "engine", `events.db${end}`), { force: true });
  const second = await restart();
  await second.engine.signal(run_id, { name: "approve", payload: "yes" });
  const { started_at } = (await second.engine.awaitRun(run_id)) ?? {};
  const starts = (await eventsOf(second, run_id)).filter(({ type }) => type === "run_start");
  expect(starts).toMatchObject([{ workflow: "order", timestamp: started_at }]);
});

test("an agent's interrupted prompt resumes, and its input is in the history once", async () => {
  const begun = Promise.withResolvers<void>();
  const { service, restart } = await openWorkflows(
    {
      "src/workflows/ask.ts": `import writer from "../agents/writer.ts";
export async function run(ctx) {
  const session = (await ctx.init(writer, { id: "fixed" })).session("main");
  const events = [];
  const stream = session.stream("Think long.");
  for await (const event of stream) events.push(event.type);
  const { text } = await stream.result;
  return { text, heard: events.includes("operation"), history: (await session.history()).map((message) => message.role) };
}`,
    },
    () => {
      begun.resolve();
      return { text: "never", delayMs: 60_000 };
    },
  );
  const { run_id } = await service.startRun("ask", {});
  await begun.promise;
  const second = await restart(() => ({ text: "At last." }));
  expect(await second.engine.awaitRun(run_id)).toMatchObject({
    status: "completed",
    result: { text: "At last.", heard: true, history: ["user", "assistant"] },
  });
});

test("skills, tasks, sessions and compaction of a run's agents are recorded as well", async () => {
  const { service, restart } = await openWorkflows({
    ".agents/skills/tidy/SKILL.md": "---\nname: tidy\ndescription: Tidies.\n---\nTidy up.\n",
    "src/workflows/all.ts": `import writer from "../agents/writer.ts";
export async function run(ctx) {
  const agent = await ctx.init(writer);
  const missing = await agent.sessions.get("side");
  const side = await agent.sessions.create("side");
  const skill = await side.skill("tidy");
  const task = await side.task("Dig.");
  const compacted = await side.compact();
  const names = (await agent.sessions.list()).map(({ session }) => session);
  await agent.sessions.delete("side");
  ctx.log.info("waiting");
  await ctx.waitFor("go");
  return { missing: missing === undefined, skill: skill.text, task: task.text, compacted, listed: names.includes("side") };
}`,
  });
  const { run_id } = await service.startRun("all", {});
  await waiting(service, run_id);
  let requestCount = 0;
  const second = await restart(() => {
    requestCount += 1;
    return { text: "Again." };
  });
  await second.engine.signal(run_id, { name: "go" });
  const record = await second.engine.awaitRun(run_id);
  expect(record).toMatchObject({
    status: "completed",
    result: { missing: true, skill: "Done.", task: "Done.", listed: true },
  });
  expect(requestCount).toBe(0);
});

test("a payload is checked before a run is accepted, and the workflow gets it as its schema parsed it", async () => {
  const { service } = await openWorkflows({
    "src/workflows/strict.ts": `export const payload = { type: "object", properties: { n: { type: "integer" } }, required: ["n"], additionalProperties: false };
export const run = (ctx) => ctx.payload.n + 1;`,
    "src/workflows/parsed.ts": `export const payload = {
  "~standard": { version: 1, vendor: "test", validate: (value) => typeof value.when === "string"
    ? { value: { when: new Date(value.when) } }
    : { issues: [{ message: "must be a text", path: ["when"] }] } },
};
export const run = (ctx) => ctx.payload.when.getUTCFullYear();`,
  });
  const refusal = {
    code: "invalid_request",
    meta: { issues: [{ path: "payload.n", message: expect.stringContaining("integer") }] },
  };
  await expect(service.startRun("strict", { n: "x" })).rejects.toMatchObject(refusal);
  await expect(service.startRun("parsed", {})).rejects.toMatchObject({
    meta: { issues: [{ path: "payload.when", message: "must be a text" }] },
  });
  expect((await service.engine.listRuns()).items).toEqual([]);
  const ends = await Promise.all(
    [service.startRun("strict", { n: 1 }), service.startRun("parsed", { when: "2026-05-05" })].map(
      async (receipt) => (await service.engine.awaitRun((await receipt).run_id))?.result,
    ),
  );
  expect(ends).toEqual([2, 2026]);
});

test("a run that is cancelled while it waits for its turn or for a signal ends its stream", async () => {
  const { service, restart } = await openWorkflows({
    "src/workflows/wait.ts": `export async function run(ctx) {
  ctx.log.info("waiting");
  return ctx.waitFor("word");
}`,
  });
  const { run_id } = await service.startRun("wait", {});
  await waiting(service, run_id);
  // Left behind by the one, cancelled by the other before it is at work again.
  const second = await restart();
  await second.engine.cancelRun(run_id);
  expect(await second.engine.awaitRun(run_id)).toMatchObject({ status: "cancelled" });
  const types: string[] = [];
  for await (const { type } of second.engine.events.subscribe(runStream(run_id), { after: 0 }))
    types.push(type);
  expect(types).toEqual(["run_start", "log", "run_end"]);
});

test("a run, and a tool of an agent, can dispatch work to an agent without waiting for it", async () => {
  const { service } = await openWorkflows(
    {
      "src/agents/lead.ts": `export default {
  kind: "kit.agent",
  describe: async (ctx) => ({
    tools: [{
      name: "hand_over",
      description: "Hands work over.",
      input: { type: "object", properties: {} },
      execute: async () => (await ctx.dispatch("writer", { id: "b", input: "From the tool." })).dispatch_id,
    }],
  }),
};`,
      "src/workflows/share.ts": `import lead from "../agents/lead.ts";
import writer from "../agents/writer.ts";
export async function run(ctx) {
  const { dispatch_id } = await ctx.dispatch(writer, { id: "a", input: { n: 1 } });
  await (await ctx.init(lead)).session().prompt("Lead.");
  return dispatch_id;
}`,
    },
    ({ prompt, tools }) =>
      tools?.some(({ name }) => name === "hand_over") && prompt.at(-1)?.role !== "tool"
        ? { toolCalls: [{ name: "hand_over" }] }
        : { text: "Done." },
  );
  const { run_id } = await service.startRun("share", {});
  const run = await service.engine.awaitRun(run_id);
  expect(run?.status).toBe("completed");
  const { items } = await service.engine.listDispatches({ agent: "writer" });
  expect(items.map(({ instance_id, input }) => [instance_id, input])).toEqual([
    ["b", "From the tool."],
    ["a", { n: 1 }],
  ]);
  expect(items.map(({ dispatch_id }) => dispatch_id)).toContain(run?.result);
});

test("a scheduled time that was missed while no worker ran is made up for once", async () => {
  const repository = await createTemporaryRepository({
    "src/workflows/nightly.ts": 'export const schedule = "0 3 * * *";\nexport const run = () => "done";\n',
  });
  onTestFinished(() => repository[Symbol.asyncDispose]());
  const folder = join(repository.root, "engine");
  const open = async (now: () => number) => {
    const parts = await openTestParts({ root: repository.root, model: createScriptedModel([]) });
    const engine = createEmbeddedEngine({ folder, clock: { ...systemClock, now } });
    return { engine, service: await createService(parts, { engine }) };
  };
  const first = await open(Date.now);
  await first.service.close({ timeoutMs: 0 });
  const days = 5 * 24 * 3_600_000;
  const second = await open(() => Date.now() + days);
  let runs = await second.engine.listRuns();
  while (runs.items.length === 0) {
    await new Promise((resolve) => setImmediate(resolve));
    runs = await second.engine.listRuns();
  }
  expect(await second.engine.awaitRun(runs.items[0]?.run_id ?? "")).toMatchObject({
    status: "completed",
    result: "done",
  });
  expect((await second.engine.listRuns()).items).toHaveLength(1);
  expect((await second.engine.listSchedules())[0]?.last_run_id).toBe(runs.items[0]?.run_id);
  await second.service.close({ timeoutMs: 0 });
});

test("a schedule with a wrong payload or time is reported at the start with what to write, and not added", async () => {
  const repository = await createTemporaryRepository({
    "src/workflows/strict.ts": `export const payload = { type: "object", properties: { n: { type: "number" } }, required: ["n"] };
export const schedule = [{ cron: "@daily", payload: { n: "one" } }, { cron: "@daily", payload: { n: 1 } }, { cron: "61 * * * *", payload: { n: 1 } }];
export const run = () => null;
`,
  });
  onTestFinished(() => repository[Symbol.asyncDispose]());
  const errors: unknown[] = [];
  const options = { root: repository.root, model: createScriptedModel([]) };
  const service = await createTestService(options, {}, (error) => errors.push(error));
  onTestFinished(() => service.close());
  expect((await service.engine.listSchedules()).map(({ name }) => name)).toEqual(["file:strict#2"]);
  const start = "The schedule of src/workflows/strict.ts cannot be used:";
  expect(errors).toMatchObject([
    {
      message: `${start} The payload is not what the workflow "strict" accepts.`,
      meta: { issues: [{ path: "payload.n", message: "must be number, not string" }] },
    },
    {
      message: `${start} "61 * * * *" is not a cron expression.`,
      hint: expect.stringContaining("such as 0 9 * * MON-FRI"),
    },
  ]);
  expect(errors.map((error) => error instanceof KitError && error.cause)).toEqual([undefined, undefined]);
});

test("a file's schedules are added at the start, and removed when the file no longer has them", async () => {
  const schedule = (text: string): string =>
    `export const schedule = ${text};\nexport const run = () => null;\n`;
  const { service, root, restart } = await openWorkflows({
    "src/workflows/daily.ts": schedule(
      '[{ cron: "0 9 * * *", timezone: "Europe/Berlin", payload: { a: 1 } }, "@hourly"]',
    ),
    "src/workflows/weekly.ts": schedule('"0 0 * * 1"'),
    "src/workflows/wrong.ts": schedule("{ at: 7 }"),
  });
  await service.engine.putSchedule({ name: "mine", workflow: "daily", cron: "0 0 1 1 *" });
  const withName = async (of: TestService) =>
    new Map((await of.engine.listSchedules()).map((item) => [item.name, item] as const));
  const first = await withName(service);
  expect([...first.keys()].toSorted()).toEqual(["file:daily", "file:daily#2", "file:weekly", "mine"]);
  expect(first.get("file:daily")).toMatchObject({ timezone: "Europe/Berlin", payload: { a: 1 } });
  expect(service.app.problems()).toMatchObject([
    { path: "src/workflows/wrong.ts", message: expect.stringContaining("cron") },
  ]);
  await rm(join(root, "src/workflows/weekly.ts"));
  await service.reload();
  const second = await withName(service);
  expect([...second.keys()].toSorted()).toEqual(["file:daily", "file:daily#2", "mine"]);
  // One that stays is not put again: a time that it missed is still to come.
  expect(second.get("file:daily")).toEqual(first.get("file:daily"));
  expect((await withName(await restart())).get("file:daily#2")).toEqual(first.get("file:daily#2"));
  // Nor does a file that is broken for a while lose its own.
  await writeFile(join(root, "src/workflows/weekly.ts"), schedule('"0 0 * * 1"'));
  const third = await restart();
  const weekly = (await withName(third)).get("file:weekly");
  expect(weekly?.next_at).toBeDefined();
  await rename(join(root, "src/workflows/weekly.ts"), join(root, "src/workflows/weekly.kept"));
  await writeFile(join(root, "src/workflows/weekly.mts"), "export const run = 1;\n");
  await third.reload();
  expect((await withName(third)).get("file:weekly")).toEqual(weekly);
});
