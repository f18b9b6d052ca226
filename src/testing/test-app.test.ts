import { expect, onTestFinished, test } from "vitest";
import { createScriptedModel } from "./scripted-model.ts";
import { createTemporaryRepository } from "./temporary-repository.ts";
import { openTestApp } from "./test-app.ts";

test("agents of a test have what the configuration gives to all, and the test's own on top", async () => {
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
