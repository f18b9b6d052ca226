import { expect, test } from "vitest";
import { createScriptedModel } from "../../testing/scripted-model.ts";
import { createTestAgent } from "../../testing/test-runtime.ts";
import type { Session } from "../session/session.ts";
import type { PromptOptions } from "./options.ts";

function open() {
  const model = createScriptedModel(() => ({ text: "ok" }));
  return { model, session: createTestAgent(model).session() };
}

const png = new Uint8Array([137, 80, 78, 71]);

// TypeScript forbids these values, but plain JavaScript can pass them.
test.each<readonly [object, string]>([
  [{ resutl: {} }, "`resutl` is not an option of a prompt; did you mean result?"],
  [{ thinkingLevel: "huge" }, "`thinkingLevel` must be one of off, minimal"],
  [{ model: 1 }, "`model` must be a text such as"],
  [{ role: 1 }, "`role` must be a role or the name of one, not 1."],
  [{ secrets: "TOKEN" }, "`secrets` must be a list of texts, not a text."],
  [{ tools: {} }, "`tools` must be a list of tools, as defineTool gives them, not an object."],
  [{ tools: ["pay"] }, "`tools[0]` must be a tool, as defineTool gives it, not a text."],
  [{ tools: [{}] }, "`tools[0].name` is required."],
  [{ tools: [{ name: "pay", description: "", input: {} }] }, "`tools[0].execute` is required."],
  [{ commands: [{}] }, "`commands[0].name` is required."],
  [{ images: [null] }, "`images[0]` must be an image, not null."],
  [{ images: ["a.png"] }, "`images[0]` must be an image, not a text."],
  [{ signal: true }, "`signal` must be an AbortSignal, not true."],
  [{ budget: 5 }, "`budget` must be an object, not 5."],
  [{ budget: { max_turns: 5 } }, "`budget.max_turns` is not a limit of a budget; did you mean maxTurns?"],
  [{ budget: { maxTurns: -1 } }, "`budget.maxTurns` must be a whole number from 1 up, not -1."],
  [{ budget: { maxCost: Number.NaN } }, "`budget.maxCost` must be a number from 0 up, not NaN."],
  [{ images: [{ data: png, media_type: "text/html" }] }, "An image has a media_type such as image/png."],
  [{ images: [{ data: png }] }, "An image has a media_type such as image/png."],
  [{ images: [{ data: "no base64!", media_type: "image/png" }] }, "An image has its bytes as `data`"],
  [{ images: [{ data: "", media_type: "image/png" }] }, "An image has its bytes as `data`"],
  [{ images: [{ url: "http://example.com/a.png" }] }, "An image has an address that starts with https://."],
])("a prompt with the options %j is refused and leaves no history", async (options, message) => {
  const { model, session } = open();
  const refused = await session.prompt("Hi", options as PromptOptions).catch((error: unknown) => error);
  expect(refused).toMatchObject({ code: "invalid_request", message: expect.stringContaining(message) });
  expect(model.calls).toHaveLength(0);
  expect(await session.history()).toEqual([]);
});

test.each<readonly [string, (session: Session) => Promise<unknown>, string]>([
  [
    "stream",
    (session) => session.stream("Hi", { modle: "a/b" } as object).result,
    "not an option of a prompt",
  ],
  [
    "skill",
    (session) => session.skill("x", { arg: {} } as object),
    "not an option of a skill; did you mean args?",
  ],
  [
    "task",
    (session) => session.task("x", { agnet: "y" } as object),
    "not an option of a task; did you mean agent?",
  ],
  [
    "shell",
    (session) => session.shell("ls", { timeout: 5 } as object),
    "not an option of a command; did you mean timeoutMs?",
  ],
  ["compact", (session) => session.compact({ fokus: "x" } as object), "did you mean focus?"],
  ["runPython", (session) => session.runPython("1", { input: {} } as object), "did you mean inputs?"],
  ["a command", (session) => session.shell(undefined as never), "must be a text"],
  ["null", (session) => session.prompt("x", null as never), "The options must be an object."],
])("a misspelled option of %s is refused and named", async (_name, call, message) => {
  await expect(call(open().session)).rejects.toThrow(message);
});

test.each([
  ["", "A prompt needs a text."],
  [" \n", "A prompt needs a text."],
  ["half a \ud83d", "A prompt's text must be well-formed Unicode."],
])("the text %j is refused as a prompt", async (text, message) => {
  await expect(open().session.prompt(text)).rejects.toMatchObject({ code: "invalid_request", message });
});
