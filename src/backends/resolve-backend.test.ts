import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { createAgent } from "../agents/define/create-agent.ts";
import { createScriptedModel } from "../testing/scripted-model.ts";
import { openTestApp } from "../testing/test-app.ts";
import { testFolder } from "../testing/test-folder.ts";
import { createTestAgent } from "../testing/test-runtime.ts";
import type { AgentBackend } from "./contract.ts";

const hasOutput = (words: string): AgentBackend => ({
  name: words,
  run: async (operation) => operation.answer(words),
});

test("a call's backend goes before the agent's, and that before kit's own loop", async () => {
  const model = createScriptedModel([{ text: "the model" }, { text: "the model again" }]);
  const own = createTestAgent(model, { backend: hasOutput("the agent's") }).session();
  expect((await own.prompt("go")).text).toBe("the agent's");
  expect((await own.prompt("go", { backend: hasOutput("the call's") })).text).toBe("the call's");
  expect((await own.prompt("go", { backend: "typed" })).text).toBe("the model");
  expect((await createTestAgent(model).session().prompt("go")).text).toBe("the model again");
});

test.each<{ readonly backend: unknown; readonly said: RegExp }>([
  { backend: "tpyed", said: /`backend` must be one of typed.*; did you mean typed\?/ },
  { backend: "pydantic", said: /`backend` must be one of typed/ },
  { backend: { name: "x" }, said: /an object with `name` and `run`/ },
  { backend: { run: () => undefined }, said: /an object with `name` and `run`/ },
  { backend: 1, said: /`backend` must be one of typed/ },
])("the backend $backend of a call is refused before anything is done", async ({ backend, said }) => {
  const model = createScriptedModel([]);
  const session = createTestAgent(model).session();
  const options = { backend } as { backend: AgentBackend };
  await expect(session.prompt("go", options)).rejects.toMatchObject({
    code: "invalid_request",
    message: expect.stringMatching(said),
  });
  expect(await session.history()).toEqual([]);
});

test("the configuration names the backend of every agent that has none of its own", async () => {
  const root = testFolder(onTestFinished);
  const config =
    'export default { agent: { backend: { name: "own", run: async (operation) => operation.answer("mine") } } };';
  writeFileSync(join(root, "kit.config.js"), config);
  const app = await openTestApp({ root, model: createScriptedModel([]) });
  const agent = await app.instance("default", "1");
  expect((await agent.session().prompt("go")).text).toBe("mine");
  await app.close();
});

test("an agent whose profile names no backend of kit's is not made", async () => {
  const root = testFolder(onTestFinished);
  const app = await openTestApp({ root, model: createScriptedModel([]) });
  const wrong = createAgent({ backend: "typd" } as never);
  await expect(app.init(wrong)).rejects.toMatchObject({
    message: expect.stringMatching(/`backend` must be one of .*; did you mean typed\?/),
  });
  await app.close();
});
