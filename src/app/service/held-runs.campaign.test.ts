import { rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "vitest";
import type { RunRecord } from "../../protocol/run.ts";
import type { TestService } from "../../testing/test-service.ts";
import { eventsOf, openWorkflows } from "./testing/open-workflows.ts";

const parent = `export async function run(ctx) {
  const first = await ctx.step("first", () => 1);
  await ctx.waitFor("go");
  return [first, await ctx.run("kid", {})];
}`;
const files = {
  "src/workflows/parent.ts": parent,
  "src/workflows/kid.ts": "export const run = async () => 2;",
};

async function untilHeld(service: TestService, runId: string): Promise<RunRecord> {
  await expect.poll(async () => (await service.engine.getRun(runId))?.problem).toBeDefined();
  const record = await service.engine.getRun(runId);
  expect(record?.status).toBe("waiting");
  return record as RunRecord;
}

const syntaxError = "export const run = async (ctx) => {;;;(";
const changes: readonly (readonly [string, string, string | undefined, RegExp])[] = [
  ["a syntax error", "parent", syntaxError, /The workflow "parent" cannot be used: its file is broken\. src/],
  ["a missing file", "parent", undefined, /There is no workflow named "parent"\./],
  ["a missing import", "parent", `import "./none.ts";\n${parent}`, /its file is broken/],
  ["another step", "parent", parent.replace('"first"', '"second"'), /Position 1 .*"first".*"second"/],
  ["a missing step", "parent", parent.replace("await ctx.waitFor", "void"), /Position 2 .*"go"/],
  [
    "another step, caught",
    "parent",
    parent.replace('step("first", () => 1)', 'step("second", () => 1).catch(() => 1)'),
    /Position 1/,
  ],
  ["another payload", "parent", `export const payload = { required: ["x"] };\n${parent}`, /payload/],
  ["a broken child", "kid", syntaxError, /The workflow "kid" cannot be used/],
  ["a missing child", "kid", undefined, /There is no workflow named "kid"/],
];

// A start resumes held runs as a reload does; a test in one process sees changed files only after a reload.
test.each(changes)("a deploy with %s holds the run, and the rollback lets it finish", async (...change) => {
  const [, name, code, message] = change;
  const { service, root } = await openWorkflows(files);
  const { run_id } = await service.startRun("parent", {});
  await expect.poll(async () => (await service.engine.getRun(run_id))?.status).toBe("waiting");
  const file = join(root, `src/workflows/${name}.ts`);
  if (code === undefined) await rm(file);
  else await writeFile(file, code);
  await service.reload();
  await service.engine.signal(run_id, { name: "go" });
  const { problem } = await untilHeld(service, run_id);
  expect(problem?.message).toMatch(message);
  expect((await eventsOf(service, run_id)).some(({ type }) => type === "run_end")).toBe(false);
  await writeFile(file, files[`src/workflows/${name}.ts` as keyof typeof files]);
  await service.reload();
  expect(await service.engine.awaitRun(run_id)).toMatchObject({ status: "completed", result: [1, 2] });
  const ends = (await eventsOf(service, run_id)).filter(({ type }) => type === "run_end");
  expect(ends).toMatchObject([{ is_error: false }]);
});

test("a reload resumes held runs; the call that started one in this process gets the problem", async () => {
  const { service, root } = await openWorkflows({
    ...files,
    "src/workflows/starts.ts": `export const run = async (ctx) => await ctx.run("late", {});`,
  });
  const started = service.app.run("starts");
  await expect(started).rejects.toMatchObject({
    code: "workflow_not_found",
    message: expect.stringMatching(
      /^The run run_\w+ of "starts" waits, because its code cannot go on: There is no/,
    ),
  });
  const [run] = (await service.engine.listRuns()).items;
  await untilHeld(service, run?.run_id ?? "");
  await writeFile(join(root, "src/workflows/late.ts"), "export const run = async () => 3;");
  await service.reload();
  expect(await service.engine.awaitRun(run?.run_id ?? "")).toMatchObject({ result: 3 });
});

const above = (name: string): string => `export const run = async (ctx) => await ctx.run("${name}");`;
const changing = `let calls = 0;
export const run = async (ctx) => {
  calls += 1;
  await ctx.step(calls === 1 ? "first" : "second", () => 1);
  await ctx.waitFor("go");
};`;

test("a call in this process gets the problem of a run two levels below its own", async () => {
  const { service } = await openWorkflows({
    "src/workflows/top.ts": above("middle"),
    "src/workflows/middle.ts": above("kid"),
    "src/workflows/kid.ts": changing,
  });
  const failing = service.app.run("top").catch((thrown: unknown) => thrown);
  const kid = async () => (await service.engine.listRuns({ workflow: "kid" })).items[0];
  await expect.poll(async () => (await kid())?.status).toBe("waiting");
  const { run_id = "" } = (await kid()) ?? {};
  await service.engine.signal(run_id, { name: "go" });
  expect(await failing).toMatchObject({
    code: "replay_mismatch",
    message: expect.stringMatching(
      `^The run ${run_id} of "kid" waits, because its code cannot go on: Position 1 .*"first".*"second"`,
    ),
    meta: { run_id },
  });
});

test("a call in this process gets the problem of a run below its own that starts a missing workflow", async () => {
  const { service } = await openWorkflows({
    "src/workflows/top.ts": above("kid"),
    "src/workflows/kid.ts": above("none"),
  });
  await expect(service.app.run("top")).rejects.toMatchObject({
    code: "workflow_not_found",
    message: expect.stringMatching(/^The run run_\w+ of "kid" waits, .* There is no workflow named "none"/),
  });
});
