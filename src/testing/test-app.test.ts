import { expect, onTestFinished, test } from "vitest";
import { createManualClock } from "./manual-clock.ts";
import { createScriptedModel } from "./scripted-model.ts";
import { createTemporaryRepository } from "./temporary-repository.ts";
import { openTestApp, type TestAppOptions } from "./test-app.ts";

test("agents of a test get the configuration's settings, and the test's settings override them", async () => {
  const toml = '[agent]\ninstructions = "Be brief."\nallow_write = true\nallow_shell = true\n';
  const folder = await createTemporaryRepository({ "kit.toml": toml });
  onTestFinished(() => folder[Symbol.asyncDispose]());
  const asked: { system: unknown; tools: readonly string[] }[] = [];
  const model = createScriptedModel(({ prompt, tools = [] }) => {
    asked.push({ system: prompt[0]?.content, tools: tools.map(({ name }) => name) });
    return { text: "ok" };
  });
  const app = await openTestApp({ root: folder.root, model, defaults: { allowShell: false } });
  onTestFinished(() => app.close());
  await (await app.instance("default", "1")).session().prompt("Hi");
  expect(asked[0]?.system).toMatch(/^Be brief\./);
  expect(asked[0]?.tools).toContain("write");
  expect(asked[0]?.tools).not.toContain("bash");
});

const waitingWorkflow = `export async function run(ctx) {
  const answer = await ctx.waitFor("approval");
  await ctx.sleep(86_400_000);
  return answer.approved === true ? "released" : "not released";
}
`;

async function openWaiting(options: Pick<TestAppOptions, "signals" | "clock">) {
  const folder = await createTemporaryRepository({ "src/workflows/release.js": waitingWorkflow });
  onTestFinished(() => folder[Symbol.asyncDispose]());
  const app = await openTestApp({ root: folder.root, model: createScriptedModel([]), ...options });
  onTestFinished(() => app.close());
  return app;
}

test("a waiting workflow of a test gets its signals and its time from the test", async () => {
  const clock = createManualClock();
  const started = clock.now();
  const app = await openWaiting({ clock, signals: { approval: () => ({ approved: true }) } });
  expect((await app.run("release")).result).toBe("released");
  expect(clock.now() - started).toBeGreaterThanOrEqual(86_400_000);
  expect(clock.now() - started).toBeLessThan(86_460_000);
});

test("a workflow of a test never hangs: a wait that nothing ends fails with an error that names it", async () => {
  const unsignalled = await openWaiting({ clock: createManualClock() });
  await expect(unsignalled.run("release")).rejects.toMatchObject({
    code: "conflict",
    message: 'The run of "release" waits for the signal "approval", and nothing in the test ends the wait.',
    hint: expect.stringContaining('signals: { "approval": … }'),
  });
  const timeless = await openWaiting({ signals: { approval: { approved: false } } });
  await expect(timeless.run("release")).rejects.toMatchObject({
    code: "conflict",
    hint: expect.stringContaining("clock: createManualClock()"),
  });
});
