import { readdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { createJsonValidator } from "../../app/runtime/validate-json.ts";
import type { KitEvent } from "../../protocol/event.ts";
import { wallTest } from "../../sandboxes/host/wall/walled.suite.ts";
import { local } from "../../sandboxes/local/local-sandbox.ts";
import { createScriptedModel } from "../../testing/scripted-model.ts";
import { testFolder } from "../../testing/test-folder.ts";
import { createTestAgent } from "../../testing/test-runtime.ts";
import { defineCommand, type KitCommand } from "../define/tool.ts";

/** Lets a model call the commands one after the other; returns their results and the events. */
async function call(commands: readonly KitCommand[], calls: readonly { name: string; input?: unknown }[]) {
  const root = testFolder(onTestFinished);
  await writeFile(join(root, "a.txt"), "one\ntwo\n");
  const model = createScriptedModel((_call, index) => {
    const next = calls[index];
    return next === undefined ? { text: "Done." } : { toolCalls: [{ id: `c${index}`, ...next }] };
  });
  const events: KitEvent[] = [];
  const agent = createTestAgent(
    model,
    { commands, onEvent: (event) => events.push(event) },
    { sandbox: local({ root }), validateJson: createJsonValidator() },
  );
  const { messages } = await agent.session().prompt("Go.");
  await agent.close();
  const results = messages.flatMap((message) => (message.role === "tool" ? message.content : []));
  const offered = (model.calls[0]?.tools ?? []).map(({ name }) => name);
  return { texts: results.map(({ content }) => JSON.stringify(content)), results, events, offered };
}

test("a command line becomes a tool that needs no allowShell and accepts no input from the model", async () => {
  const count = defineCommand("count_lines", "wc -l < a.txt", { description: "Counts lines." });
  const { results, texts, events, offered } = await call(
    [count],
    [{ name: "count_lines" }, { name: "count_lines", input: { command: "rm a.txt" } }],
  );
  expect(offered).toContain("count_lines");
  expect(offered).not.toContain("bash");
  expect(texts[0]).toContain("2");
  expect(results[0]?.is_error).toBe(false);
  expect(results[1]?.is_error).toBe(true);
  expect(texts[1]).toContain("is not known");
  expect(events.filter(({ type }) => type === "command_end")).toMatchObject([{ exit_code: 0 }]);
});

test("a function becomes a tool whose arguments follow its schema", async () => {
  const publish = defineCommand("publish", (args) => `published ${JSON.stringify(args)}`, {
    input: { type: "object", properties: { tag: { type: "string" } }, required: ["tag"] },
  });
  const { texts, results } = await call(
    [publish],
    [
      { name: "publish", input: { tag: "v1" } },
      { name: "publish", input: {} },
    ],
  );
  expect(texts[0]).toContain("published");
  expect(texts[0]).toContain("v1");
  expect(results[1]?.is_error).toBe(true);
  expect(texts[1]).toContain("is missing");
});

wallTest("an isolated command of a model reads no file of secrets and leaves no protected path", async () => {
  const root = testFolder(onTestFinished);
  await writeFile(join(root, ".env.production"), "A=sesame");
  const command =
    "cat .env.production | rev; git init -q a; echo {} | tee package.json .envrc; echo free > b.txt";
  const model = createScriptedModel((_call, index) =>
    index === 0 ? { toolCalls: [{ id: "c", name: "bash", input: { command } }] } : { text: "Done." },
  );
  const agent = createTestAgent(
    model,
    {
      allowShell: true,
      allowWrite: true,
      allowCompoundCommands: true,
      allowProtectedPaths: ["package.json"],
    },
    { sandbox: local({ root }), validateJson: createJsonValidator() },
  );
  const { messages } = await agent.session().prompt("Go.");
  await agent.close();
  const result = JSON.stringify(messages.find(({ role }) => role === "tool"));
  expect(result).not.toContain("emases");
  expect(result).toContain("a/.git");
  expect((await readdir(root)).sort()).toEqual([
    ".env.production",
    "a",
    "b.txt",
    "package.json",
    "refused-.envrc",
  ]);
});

test("a failing command is a result with its exit code, and a command with a reserved name is refused", async () => {
  const { results, texts } = await call([defineCommand("check", "ls missing-file")], [{ name: "check" }]);
  expect(results[0]?.is_error).toBe(true);
  expect(texts[0]).toContain("Exit code");
  await expect(call([defineCommand("read", "true")], [{ name: "read" }])).rejects.toThrow(
    new TypeError('`tools` has the name "read", which is that of a built-in tool.'),
  );
});
