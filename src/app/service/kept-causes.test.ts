import { expect, test } from "vitest";
import type { ErrorCause } from "../../protocol/error-cause.ts";
import type { KitEvent } from "../../protocol/event.ts";
import { eventsOf, openWorkflows, waiting } from "./testing/open-workflows.ts";

const agent = (describe: string): string => `export default { kind: "kit.agent", describe: ${describe} };\n`;

/** Returns the error in the last event of a type. */
function errorIn(events: readonly KitEvent[], type: KitEvent["type"]): unknown {
  const found = events.findLast((event) => event.type === type);
  return found !== undefined && "error" in found ? found.error : undefined;
}

test("an error of a step is in the run's record and events, with its place, over restarts too", async () => {
  const { service, root, restart } = await openWorkflows({
    "src/workflows/_github.ts": `export class HttpError extends Error {}
export function call() {
  throw new HttpError("GitHub said 500", { cause: new Error("socket hang up in " + import.meta.dirname) });
}`,
    "src/workflows/release.ts": `import { call } from "./_github.ts";
export async function run(ctx) {
  const caught = await ctx.step("try", () => call()).catch((error) => error);
  ctx.log.info("waiting");
  await ctx.waitFor("go");
  if (ctx.payload.wrap) throw new Error("Release failed", { cause: caught });
  throw caught;
}`,
  });
  const cause: ErrorCause = {
    name: "HttpError",
    message: "GitHub said 500",
    path: "src/workflows/_github.ts",
    line: 3,
    cause: {
      name: "Error",
      message: "socket hang up in src/workflows",
      path: "src/workflows/_github.ts",
      line: 3,
    },
  };
  const failed = { type: "internal_error", message: 'The step "try" failed.', cause };
  const live = await service.startRun("release", {});
  const later = await service.startRun("release", {});
  const wrapped = await service.startRun("release", { wrap: true });
  for (const { run_id } of [live, later, wrapped]) await waiting(service, run_id);
  expect(errorIn(await eventsOf(service, live.run_id), "step_end")).toEqual(failed);
  await service.engine.signal(live.run_id, { name: "go" });
  expect((await service.engine.awaitRun(live.run_id))?.error).toEqual(failed);
  expect(errorIn(await eventsOf(service, live.run_id), "run_end")).toEqual(failed);
  const next = await restart();
  for (const { run_id } of [later, wrapped]) await next.engine.signal(run_id, { name: "go" });
  expect((await next.engine.awaitRun(later.run_id))?.error).toEqual(failed);
  expect((await next.engine.awaitRun(wrapped.run_id))?.error).toEqual({
    type: "internal_error",
    message: 'The workflow "release" failed.',
    cause: {
      name: "Error",
      message: "Release failed",
      path: "src/workflows/release.ts",
      line: 6,
      cause: { name: "KitError", message: failed.message, cause },
    },
  });
  expect(JSON.stringify(await next.engine.listRuns())).not.toContain(root);
});

test("any thrown value ends a run with a description of the value", async () => {
  const throws: Readonly<Record<string, readonly [code: string, cause: object]>> = {
    text: ['"GitHub said 500"', { name: "string", message: "GitHub said 500" }],
    nothing: ["null", { name: "null" }],
    bare: ["Object.assign(Object.create(null), { status: 500 })", { message: '{"status":500}' }],
    several: [
      'new AggregateError([new Error("a"), new Error("b")], "both")',
      { errors: [{ message: "a" }, { message: "b" }] },
    ],
    circle: ['(() => { const e = new Error("round"); e.cause = e; return e; })()', { message: "round" }],
    sly: [
      'Object.defineProperty(new Error(""), "message", { get() { throw new Error("no"); } })',
      { name: "Error" },
    ],
    huge: ['new Error("x".repeat(10_000_000))', { message: expect.stringMatching(/^x{1999}…$/) }],
    lines: ['new Error("line\\n".repeat(500))', { path: "src/workflows/lines.ts", line: 1 }],
  };
  const { service } = await openWorkflows(
    Object.fromEntries(
      Object.entries(throws).map(([name, [code]]) => [
        `src/workflows/${name}.ts`,
        `export const run = (ctx) => (ctx.payload.step ? ctx.step("s", () => { throw ${code}; }) : Promise.reject(${code}));\n`,
      ]),
    ),
  );
  for (const [name, [, cause]] of Object.entries(throws)) {
    for (const payload of [{}, { step: true }]) {
      const { run_id } = await service.startRun(name, payload);
      const run = await service.engine.awaitRun(run_id);
      expect([name, run?.error]).toEqual([name, expect.objectContaining({ type: "internal_error" })]);
      expect([name, run?.error?.cause]).toMatchObject([name, cause]);
    }
  }
});

test("an error of an agent's function is recorded in a run and in a dispatch", async () => {
  const { service } = await openWorkflows({
    "src/agents/odd.ts": agent('async () => {\n  throw new Error("no lease for this room");\n}'),
    "src/workflows/ask.ts":
      'import odd from "../agents/odd.ts";\nexport const run = async (ctx) => (await ctx.init(odd)).session().prompt("x");\n',
  });
  const cause = { name: "Error", message: "no lease for this room", path: "src/agents/odd.ts", line: 2 };
  const { run_id } = await service.startRun("ask", {});
  expect((await service.engine.awaitRun(run_id))?.error?.cause).toEqual(cause);
  const { dispatch_id } = await service.dispatch({ agent: "odd", instance_id: "1", session: "s" }, "x");
  expect(await service.engine.awaitDispatch(dispatch_id)).toMatchObject({
    status: "failed",
    error: { type: "internal_error", message: 'The agent "odd" could not be made.', cause },
  });
});

test("the error of a tool reaches the model, and its place the event, without secrets", async () => {
  const key = "sk-0123456789abcdefghij";
  const { service } = await openWorkflows(
    {
      "src/agents/caller.ts": agent(`async ({ env }) => ({
  tools: [
    {
      name: "call",
      description: "Calls.",
      input: { type: "object" },
      execute: async ({ odd }) => {
        if (odd) throw Object.create(null);
        throw new Error("fetch failed", { cause: new Error("refused " + env.CALL_API_KEY) });
      },
    },
  ],
})`),
      "src/workflows/ask.ts":
        'import caller from "../agents/caller.ts";\nexport const run = async (ctx) => (await (await ctx.init(caller)).session().prompt("x")).text;\n',
    },
    ({ prompt }) =>
      prompt.at(-1)?.role === "tool"
        ? { text: "done" }
        : {
            toolCalls: [
              { name: "call", input: {} },
              { name: "call", input: { odd: true } },
            ],
          },
    { env: { CALL_API_KEY: key } },
  );
  const { run_id } = await service.startRun("ask", {});
  expect((await service.engine.awaitRun(run_id))?.result).toBe("done");
  const events = await eventsOf(service, run_id);
  expect(JSON.stringify(events)).not.toContain(key);
  expect(events.filter(({ type }) => type === "tool_end")).toMatchObject([
    {
      result: expect.stringMatching(/^fetch failed; caused by: refused /),
      cause: { message: "fetch failed", path: "src/agents/caller.ts", line: 9, cause: { name: "Error" } },
    },
    { is_error: true, cause: { name: "object" } },
  ]);
});

test("the error of an invalid answer names the agent or skill, and the issues", async () => {
  const { service } = await openWorkflows(
    {
      ".agents/skills/count/SKILL.md": `---
name: count
description: Counts.
output_schema: { type: object, properties: { many: { type: integer } }, required: [many] }
---
Count.
`,
      "src/workflows/ask.ts": `import writer from "../agents/writer.ts";
export async function run(ctx) {
  const session = (await ctx.init(writer)).session();
  if (ctx.payload.skill) return await session.skill("count");
  return await session.prompt("How many?", { result: { type: "object", required: ["many"] } });
}`,
    },
    () => ({ text: '{"few":1}' }),
  );
  for (const [payload, message] of [
    [{}, /^The agent "writer" returned no valid result in 4 attempts: .*many/],
    [
      { skill: true },
      /^The skill "count" of the agent "writer" returned no valid result in 4 attempts: .*many/,
    ],
  ] as const) {
    const { run_id } = await service.startRun("ask", payload);
    const error = (await service.engine.awaitRun(run_id))?.error;
    expect(error).toMatchObject({ type: "typed_output", message: expect.stringMatching(message) });
  }
});
