import { expect, onTestFinished, test } from "vitest";
import { createAgent } from "../../agents/define/create-agent.ts";
import { e2b } from "../../sandboxes/e2b/e2b-sandbox.ts";
import { startFakeE2b } from "../../sandboxes/e2b/testing/fake-e2b.ts";
import { createScriptedModel } from "../../testing/scripted-model.ts";
import { createTemporaryRepository } from "../../testing/temporary-repository.ts";
import { initAgent } from "../service/open-service.ts";

test("a session without tool calls starts no machine; tools work on one with masked secrets, and it is removed with the session", async () => {
  const fake = await startFakeE2b();
  onTestFinished(() => fake.close());
  await using folder = await createTemporaryRepository({ "a.txt": "alpha\n" });
  const model = createScriptedModel([
    { text: "Hello." },
    { toolCalls: [{ name: "bash", input: { command: "printenv TOKEN" } }] },
    { text: "Done." },
  ]);
  const sandbox = e2b({ apiKey: "e2b_test", apiUrl: fake.url, sandboxUrl: fake.url });
  const definition = createAgent({
    model: "scripted/test",
    sandbox,
    allowShell: true,
    allowNetwork: ["registry.npmjs.org"],
    allowedCommands: [{ command: "printenv", unsafe: true }],
  });
  const agent = await initAgent(definition, {
    root: folder.root,
    env: { TOKEN: "s3cret-value-1" },
    models: { "scripted/test": model },
  });
  onTestFinished(() => agent.close());
  const session = agent.session();
  await session.prompt("Hi");
  expect(fake.requests).toEqual([]);
  const { text } = await session.prompt("What is the token?", { secrets: ["TOKEN"] });
  expect(text).toBe("Done.");
  expect(JSON.stringify(model.calls)).not.toContain("s3cret-value-1");
  expect(fake.created.at(-1)).toMatchObject({ network: { allowOut: ["registry.npmjs.org"] } });
  expect(fake.machines.size).toBe(1);
  await agent.sessions.delete("default");
  expect(fake.machines.size).toBe(0);
});
