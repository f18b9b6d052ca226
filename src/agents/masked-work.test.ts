import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, expect, test } from "vitest";
import type { KitEvent } from "../protocol/event.ts";
import { local } from "../sandboxes/local/local-sandbox.ts";
import { InMemorySessionStore } from "../stores/memory/memory-store.ts";
import { createScriptedModel } from "../testing/scripted-model.ts";
import { testFolder } from "../testing/test-folder.ts";
import { createTestAgent } from "../testing/test-runtime.ts";
import { defineTool } from "./define/tool.ts";
import { createSecretMask } from "./secrets.ts";

const key = "sk-canary-0123456789";
const granted = "granted-canary-9876";
const root = testFolder(afterAll);

test("a key is nowhere in what a model is told, in events, in the history and in answers, whoever says it", async () => {
  writeFileSync(join(root, "notes.txt"), `key: ${key}\n${Buffer.from(key).toString("base64")}\n`);
  const events: KitEvent[] = [];
  const store = new InMemorySessionStore();
  const echo = defineTool({
    name: "echo",
    description: "Says it again.",
    input: { type: "object" },
    execute: (input) => `${JSON.stringify(input)} ${granted}`,
  });
  const fail = defineTool({
    name: "fail",
    description: "Fails.",
    input: { type: "object" },
    execute: () => {
      throw new Error(`401 for ${key}`);
    },
  });
  const model = createScriptedModel((_call, index) =>
    index === 0
      ? {
          text: `I say ${key}`,
          toolCalls: [
            { id: "1", name: "read", input: { path: "notes.txt" } },
            { id: "2", name: "echo", input: { [key]: key } },
            { id: "3", name: "fail", input: {} },
            { id: "4", name: "grep", input: { pattern: "canary" } },
            { id: "5", name: "bash", input: { command: "cat notes.txt" } },
          ],
        }
      : { text: `Done with ${key} and ${granted}.` },
  );
  const agent = createTestAgent(
    model,
    {
      instructions: `Use ${key}.`,
      tools: [echo, fail],
      allowShell: true,
      onEvent: (event) => events.push(event),
    },
    {
      store,
      sandbox: local({ root }),
      env: { OTHER: granted },
      mask: createSecretMask([key]),
    },
  );
  const session = agent.session();
  const result = await session.prompt(`My keys are ${key} and ${granted}.`, { secrets: ["OTHER"] });
  await session.task(`Whose are ${key} and ${granted}?`, { secrets: ["OTHER"] });
  const shell = await session.shell("cat notes.txt");
  const reported = JSON.stringify(model.calls.map(({ prompt }) => prompt));
  const kept = JSON.stringify(await session.history());
  for (const text of [
    reported,
    kept,
    JSON.stringify(events),
    JSON.stringify(result),
    JSON.stringify(shell),
  ]) {
    expect(text).toContain("[secret]");
    for (const secret of [key, granted, Buffer.from(key).toString("base64").slice(0, 20)])
      expect(text).not.toContain(secret);
  }
  const said = events.flatMap((event) => (event.type === "text_delta" ? [event.text] : [])).join("");
  expect(said).toBe(`I say [secret]${"Done with [secret] and [secret].".repeat(2)}`);
  expect(result.text).toBe("Done with [secret] and [secret].");
  await agent.close();
});

test("a granted secret that is a part of the application's key does not leave the rest of the key", async () => {
  const events: KitEvent[] = [];
  const agent = createTestAgent(
    createScriptedModel(() => ({ text: "Yes." })),
    { onEvent: (event) => events.push(event) },
    { env: { PART: "granted-canary" }, mask: createSecretMask([`head-${granted}`]) },
  );
  await agent.session().prompt(`It is head-${granted}.`, { secrets: ["PART"] });
  const start = events.find((event) => event.type === "operation_start");
  expect(start).toMatchObject({ message: "It is [secret]." });
  await expect(agent.session().task("x", { secrets: "PART" as never })).rejects.toMatchObject({
    code: "invalid_request",
  });
  await agent.close();
});

test("a key that a provider repeats in its error is masked for the caller, too", async () => {
  const model = createScriptedModel(() => {
    throw new Error(`Incorrect API key provided: ${key}`);
  });
  const events: KitEvent[] = [];
  const agent = createTestAgent(
    model,
    { onEvent: (event) => events.push(event) },
    { mask: createSecretMask([key]), retry: { attempts: 1, baseDelayMs: 1, maxDelayMs: 1 } },
  );
  const error = await agent
    .session()
    .prompt("x")
    .then(
      () => undefined,
      (thrown: unknown) => thrown as Error,
    );
  const chain = [error, error?.cause, (error?.cause as Error | undefined)?.cause].map(String).join("\n");
  expect(chain).toContain("[secret]");
  expect(chain + JSON.stringify(events)).not.toContain(key);
  await agent.close();
});
