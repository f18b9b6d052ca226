import { expect, test } from "vitest";
import type { KitEvent } from "../../protocol/event.ts";
import { createScriptedModel, type Script } from "../../testing/scripted-model.ts";
import { createTestAgent } from "../../testing/test-runtime.ts";
import type { AgentProfile } from "../define/agent-profile.ts";
import type { AgentHooks } from "../define/hooks.ts";
import { defineTool } from "../define/tool.ts";

const calling =
  (tool: string): Script =>
  (_call, index) =>
    index === 0 ? { toolCalls: [{ name: tool, input: {} }] } : { text: "Done." };

const echo = () =>
  defineTool({ name: "echo", description: "x", input: { type: "object" }, execute: (input) => ({ input }) });

async function prompt(profile: AgentProfile, script: Script) {
  const agent = createTestAgent(createScriptedModel(script), profile);
  const work = agent.session().prompt("Go.");
  const { text, messages } = await work.finally(() => agent.close());
  const result = messages.find(({ role }) => role === "tool")?.content[0];
  return { text, output: JSON.stringify(result), isError: result?.type === "tool_result" && result.is_error };
}

test("the tool event carries the error of a failed hook as its cause, and the model does not see it", async () => {
  const events: KitEvent[] = [];
  const profile: AgentProfile = {
    tools: [echo()],
    hooks: {
      beforeTool: () => {
        throw new Error("The list of names is missing.");
      },
    },
    onEvent: (event) => void events.push(event),
  };
  const agent = createTestAgent(createScriptedModel(calling("echo")), profile, {
    causeOf: (error) => (error instanceof Error ? { name: error.name, message: error.message } : undefined),
  });
  const { messages } = await agent
    .session()
    .prompt("Go.")
    .finally(() => agent.close());
  const cause = { name: "Error", message: "The list of names is missing." };
  expect(events).toContainEqual(expect.objectContaining({ type: "tool_end", is_error: true, cause }));
  expect(JSON.stringify(messages)).not.toContain(cause.message);
});

test.each(["beforeModel", "afterModel", "beforeTool", "afterTool"] as const)(
  "an abort ends a prompt whose hook %s never resolves, and the session stays usable",
  async (name) => {
    const asked = Promise.withResolvers<void>();
    let isHanging = true;
    const hang = () => {
      if (!isHanging) return undefined;
      asked.resolve();
      return new Promise<never>(() => undefined);
    };
    const agent = createTestAgent(createScriptedModel(calling("echo")), {
      tools: [echo()],
      hooks: { [name]: hang },
    });
    const work = agent.session().prompt("Go.");
    await asked.promise;
    const aborted = expect(work).rejects.toMatchObject({ code: "aborted" });
    await agent.session().abort();
    await aborted;
    isHanging = false;
    expect((await agent.session().prompt("Again.")).text).toBe("Done.");
    await agent.close();
  },
);

test.each<[keyof AgentHooks, string]>([
  [
    "beforeTool",
    "The call was refused, and was not run: The operation was aborted before a hook had answered.",
  ],
  ["afterTool", "The call was aborted before it started."],
])("an abort beside a %s hook never claims that a call ended or was run", async (name, notRun) => {
  const started = Promise.withResolvers<void>();
  const hang = defineTool({
    name: "hang",
    description: "x",
    input: { type: "object" },
    exclusive: true,
    execute: () => {
      started.resolve();
      return new Promise<string>(() => undefined);
    },
  });
  const call = { name: "hang", input: {} };
  const agent = createTestAgent(createScriptedModel([{ toolCalls: [call, call] }]), {
    tools: [hang],
    hooks: { [name]: () => undefined },
  });
  const work = agent.session().prompt("Go.");
  const aborted = expect(work).rejects.toMatchObject({ code: "aborted" });
  await started.promise;
  await agent.session().abort();
  await aborted;
  const results = (await agent.session().history()).find(({ role }) => role === "tool")?.content;
  await agent.close();
  const texts = ["The call was aborted. What it had done by then is unknown.", notRun];
  expect(results).toMatchObject(texts.map((text) => ({ content: [{ type: "text", text }] })));
});

test("the usage of an answer that a hook refuses counts for the operation, its budget and that of its parent", async () => {
  const events: KitEvent[] = [];
  const refuse = { afterModel: () => ({ refuse: "It names a customer." }) };
  const usage = { input: 100, output: 10 };
  const script: Script = ({ prompt: sent }) =>
    JSON.stringify(sent).includes("Check it.")
      ? { text: "Ann", usage }
      : { toolCalls: [{ name: "task", input: { prompt: "Check it.", agent: "checker" } }], usage };
  const agent = createTestAgent(createScriptedModel(script), {
    subagents: [{ name: "checker", description: "Checks.", hooks: refuse }],
    budget: { maxTokens: 200 },
    onEvent: (event) => void events.push(event),
  });
  await expect(agent.session().prompt("Go.")).rejects.toMatchObject({ code: "budget_exceeded" });
  await agent.close();
  const spent = events.flatMap((event) => (event.type === "operation" ? [event.usage?.total_tokens] : []));
  expect(spent).toEqual([110, 220]);
});

const cyclic: Record<string, unknown> = {};
cyclic.itself = cyclic;

test.each<[keyof AgentHooks, string, unknown]>([
  ["afterTool", "`content` must be", { content: 5 }],
  ["afterTool", "`content` is required", { content: undefined }],
  ["afterTool", "`content` must be", { content: [{ type: "tex", text: "x" }] }],
  ["afterTool", "`content` must be", { content: [{ type: "text" }] }],
  ["afterTool", "An image", { content: [{ type: "image", media_type: "image/png" }] }],
  ["afterTool", "`isError` must be true or false", { content: "x", isError: "yes" }],
  ["beforeTool", "`args` must be JSON", { args: cyclic }],
  ["beforeTool", "`args` must be JSON", { args: { n: 1n } }],
  ["beforeTool", "`args` is required", { args: undefined }],
  ["beforeTool", "`refuse` must be", { refuse: true }],
])("an invalid change from %s refuses the call and names the fault: %s", async (name, why, change) => {
  const hooks = { [name]: () => change } as AgentHooks;
  const { output, isError, text } = await prompt({ tools: [echo()], hooks }, calling("echo"));
  expect(output).toContain(`The hook ${name} returned an invalid`);
  expect(output).toContain(why);
  expect({ isError, text }).toEqual({ isError: true, text: "Done." });
});

test.each<[keyof AgentHooks, string, unknown]>([
  ["beforeModel", "`prompt` must be a list", { prompt: "Go." }],
  ["beforeModel", "`prompt[0]` must be", { prompt: [{ role: "users", content: [] }] }],
  ["beforeModel", "`prompt[0]` must be", { prompt: [{ role: "user", content: "Go." }] }],
  [
    "beforeModel",
    "`prompt[0]` must be",
    { prompt: [{ role: "user", content: [{ type: "txt", text: "x" }] }] },
  ],
  ["afterModel", "`content` must be a list", { content: "Hello." }],
  ["afterModel", "`content[0]` must be", { content: [null] }],
  [
    "afterModel",
    "`content[0]` must be",
    { content: [{ type: "tool_call", id: "1", name: "echo", args: {} }] },
  ],
])("an invalid change from %s fails the operation and names the fault: %s", async (name, why, change) => {
  const hooks = { [name]: () => change } as AgentHooks;
  const work = prompt({ tools: [echo()], hooks }, [{ text: "Hello." }]);
  await expect(work).rejects.toMatchObject({
    code: "forbidden",
    message: expect.stringContaining(`The hook ${name} returned an invalid`),
    hint: expect.stringContaining(why),
  });
});
