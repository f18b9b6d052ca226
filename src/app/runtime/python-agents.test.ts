import { expect, onTestFinished, test } from "vitest";
import { openProject } from "../../project/open-project.ts";
import { local } from "../../sandboxes/local/local-sandbox.ts";
import { InMemorySessionStore } from "../../stores/memory/memory-store.ts";
import { createScriptedModel, type Script } from "../../testing/scripted-model.ts";
import { createTemporaryRepository } from "../../testing/temporary-repository.ts";
import type { App } from "../service/app.ts";
import { openProjectService } from "../service/open-project-service.ts";

// As `createAgent` of kit makes it.
const counter = `export default { kind: "kit.agent", describe: async () => ({
  python: { functions: { step: (n) => n + 1 } },
  subagents: [{ name: "plain" }],
}) };`;

async function open(script: Script): Promise<App> {
  const folder = await createTemporaryRepository({ "src/agents/counter.ts": counter });
  const project = await openProject({ root: folder.root, indexFile: ":memory:" });
  const { app } = await openProjectService({
    project,
    loaded: { config: {}, environment: { PATH: process.env.PATH } },
    engine: "memory",
    defaults: { model: "scripted/test" },
    models: { "scripted/test": createScriptedModel(script) },
    sandbox: local({ root: folder.root }),
    store: new InMemorySessionStore(),
  });
  onTestFinished(async () => {
    await app.close();
    await project.close();
    await folder[Symbol.asyncDispose]();
  });
  return app;
}

test("an agent file gives its model Python, and a program the same variables", async () => {
  const app = await open([
    { toolCalls: [{ name: "run_code", input: { code: "n = step(41)\nn" } }] },
    { text: "It is 42." },
  ]);
  const session = (await app.instance("counter", "1")).session();
  const { messages } = await session.prompt("Count.");
  expect(JSON.stringify(messages)).toContain("Result: 42");
  expect((await session.runPython("step(n)")).result).toBe(43);
  const other = (await app.instance("counter", "2")).session();
  await expect(other.runPython("n")).rejects.toMatchObject({ exception: { type: "NameError" } });
});

test("a subagent has no Python unless its profile enables it", async () => {
  const offered: (readonly string[])[] = [];
  const app = await open((call, index) => {
    offered.push((call.tools ?? []).map(({ name }) => name));
    return index === 0
      ? { toolCalls: [{ name: "task", input: { prompt: "Help.", agent: "plain" } }] }
      : { text: "Done." };
  });
  await (await app.instance("counter", "1")).session().prompt("Go.");
  expect(offered.map((names) => names.includes("run_code"))).toEqual([true, false, true]);
});
