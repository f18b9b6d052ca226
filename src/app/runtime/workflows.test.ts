import { expect, onTestFinished, test } from "vitest";
import type { KitEvent } from "../../protocol/event.ts";
import { createScriptedModel, type Script } from "../../testing/scripted-model.ts";
import { createTemporaryRepository, type TemporaryRepository } from "../../testing/temporary-repository.ts";
import { openTestApp } from "../../testing/test-app.ts";
import type { App } from "../service/app.ts";

// As `createAgent` of kit makes it.
const helper = `export default {
  kind: "kit.agent",
  describe: async (ctx) => ({ instructions: "Helping " + ctx.id + " with " + ctx.payload.topic }),
};
`;

/** A project in a folder of its own, opened with a model that follows a script. */
async function open(
  files: Readonly<Record<string, string>>,
  script: Script = () => ({ text: "Done." }),
): Promise<{ app: App; repository: TemporaryRepository; reported: string[] }> {
  const repository = await createTemporaryRepository(files);
  const reported: string[] = [];
  const model = createScriptedModel((call, index) => {
    reported.push(JSON.stringify(call.prompt));
    return typeof script === "function" ? script(call, index) : (script[index] ?? { text: "Done." });
  });
  const env = { REGION: "eu", API_KEY: "sk-live-1234567890abcdef" };
  const app = await openTestApp({ root: repository.root, model, env });
  onTestFinished(async () => {
    await app.close();
    await repository[Symbol.asyncDispose]();
  });
  return { app, repository, reported };
}

test("a workflow gets its run, payload, environment, request, log and agents", async () => {
  const { app, reported } = await open({
    "src/agents/helper.ts": helper,
    "src/workflows/report.ts": `import helper from "../agents/helper.ts";
export async function run(ctx) {
  ctx.log.info("began", { topic: ctx.payload.topic });
  ctx.log.warn("careful");
  ctx.log.error("wrong");
  const agent = await ctx.init(helper);
  const { text } = await (await agent.session()).prompt("Write.");
  return { id: ctx.id, region: ctx.env.REGION, from: ctx.req?.headers.get("x-from"), agent: agent.name, text };
}`,
  });
  const events: KitEvent[] = [];
  const request = new Request("http://localhost/", { headers: { "x-from": "test" } });
  const { run_id, result } = await app.run("report", {
    payload: { topic: "tea" },
    request,
    onEvent: (event) => events.push(event),
  });
  expect(run_id).toMatch(/^run_[0-9A-HJKMNP-TV-Z]{26}$/);
  expect(result).toEqual({ id: run_id, region: "eu", from: "test", agent: "helper", text: "Done." });
  expect(reported[0]).toContain(`Helping ${run_id} with tea`);
  expect(events[0]).toMatchObject({ type: "run_start", workflow: "report", run_id });
  expect(events.at(-1)).toMatchObject({ type: "run_end", is_error: false });
  expect(events.every((event) => event.run_id === run_id)).toBe(true);
  expect(events.map(({ index }) => index)).toEqual(events.map((_, position) => position + 1));
  expect(events.filter(({ type }) => type === "log")).toMatchObject([
    { level: "info", message: "began", data: { topic: "tea" } },
    { level: "warning", message: "careful" },
    { level: "error", message: "wrong" },
  ]);
  expect(events.map(({ type }) => type)).toEqual(
    expect.arrayContaining(["turn_request", "turn", "operation"]),
  );
});

test("the error of a failed workflow has the thrown error, its place and the run", async () => {
  const { app } = await open({
    "src/workflows/fail.ts": 'export async function run() {\n  throw new Error("no ink");\n}\n',
  });
  const events: KitEvent[] = [];
  await expect(app.run("fail", { onEvent: (event) => events.push(event) })).rejects.toMatchObject({
    code: "internal_error",
    message: 'The workflow "fail" failed.',
    hint: "no ink (src/workflows/fail.ts:2)",
    meta: { run_id: expect.stringMatching(/^run_/) },
  });
  expect(events.at(-1)).toMatchObject({ type: "run_end", is_error: true });
  await expect(app.run("missing")).rejects.toMatchObject({ code: "workflow_not_found" });
});

test("a signal stops a run together with its agents", async () => {
  const stop = new AbortController();
  const { app } = await open(
    {
      "src/agents/helper.ts": helper,
      "src/workflows/long.ts": `import helper from "../agents/helper.ts";
export const run = async (ctx) => (await ctx.init(helper)).session().prompt("Go on and on.");`,
    },
    (call) => {
      stop.abort(new Error("enough"));
      return { text: call.abortSignal?.aborted === true ? "" : "on", delayMs: 60_000 };
    },
  );
  await expect(app.run("long", { signal: stop.signal })).rejects.toThrow("enough");
});

test("an instance continues its history, separately from other instances and agents", async () => {
  const { app } = await open(
    { "src/agents/helper.ts": helper, "src/agents/other.ts": helper },
    ({ prompt }) => ({ text: String(prompt.filter(({ role }) => role === "user").length) }),
  );
  const ask = async (name: string, id: string) =>
    (await (await app.instance(name, id, { topic: "tea" })).session().prompt("x")).text;
  expect(await ask("helper", "1")).toBe("1");
  expect(await ask("helper", "1")).toBe("2");
  expect(await ask("helper", "2")).toBe("1");
  expect(await ask("other", "1")).toBe("1");
  await expect(app.instance("missing", "1")).rejects.toMatchObject({ code: "agent_not_found" });
});

test("an observer gets the events of every agent and workflow until it is removed", async () => {
  const { app } = await open({ "src/agents/helper.ts": helper });
  const received: string[] = [];
  const leave = app.onEvent((event) => received.push(event.agent ?? ""));
  await (await app.instance("helper", "1")).session().prompt("x");
  expect(new Set(received)).toEqual(new Set(["helper"]));
  leave();
  received.length = 0;
  await (await app.instance("helper", "1")).session().prompt("x");
  expect(received).toEqual([]);
});

test("a workflow does not close an instance that a caller of the application holds", async () => {
  const { app } = await open({
    "src/agents/helper.ts": helper,
    "src/workflows/none.ts": "export const run = async (ctx) => ctx.step('one', () => 1);\n",
  });
  const agent = await app.instance("helper", "1");
  await agent.session().prompt("Before.");
  expect((await app.run("none")).result).toBe(1);
  expect((await agent.session().prompt("After.")).text).toBe("Done.");
  const { dispatch_id } = await app.dispatch("helper", { id: "1", input: "Later." });
  expect(dispatch_id).toMatch(/^\w+_/);
  await expect(app.dispatch("none", { id: "1", input: "x" })).rejects.toMatchObject({
    code: "agent_not_found",
  });
});

test("an operation names its step, and the end of a run its reason", async () => {
  const { app } = await open({
    "src/agents/helper.ts": helper,
    "src/workflows/report.ts": `import helper from "../agents/helper.ts";
export async function run(ctx) {
  const agent = await ctx.init(helper);
  const ask = (session) => agent.session(session).prompt("Write.");
  await Promise.all([ctx.step("write", () => ask("one")), ctx.step("write", () => ask("two"))]);
  await ask("three");
  if (ctx.payload.fails) throw new Error("no");
}`,
  });
  const events: KitEvent[] = [];
  await app.run("report", { onEvent: (event) => events.push(event) });
  const steps = events.filter((event) => event.type === "step_start");
  expect(new Set(steps.map(({ step_id }) => step_id)).size).toBe(2);
  const starts = events.filter((event) => event.type === "operation_start");
  expect(starts.map(({ session, step }) => [session, step]).sort()).toEqual([
    ["one", "write"],
    ["three", undefined],
    ["two", "write"],
  ]);
  expect(new Set(starts.flatMap(({ step_id }) => step_id ?? []))).toEqual(
    new Set(steps.map(({ step_id }) => step_id)),
  );
  expect(events.at(-1)).toMatchObject({ type: "run_end", reason: "completed" });
  const failing = { payload: { fails: true }, onEvent: (event: KitEvent) => events.push(event) };
  await app.run("report", failing).catch(() => undefined);
  expect(events.at(-1)).toMatchObject({ type: "run_end", reason: "failed" });
});
