import { readdir } from "node:fs/promises";
import { inspect } from "node:util";
import { expect, onTestFinished, test } from "vitest";
import { z } from "zod";
import type { KitEvent } from "../../protocol/event.ts";
import { local } from "../../sandboxes/local/local-sandbox.ts";
import { createScriptedModel, type Script } from "../../testing/scripted-model.ts";
import { testFolder } from "../../testing/test-folder.ts";
import { createTestAgent } from "../../testing/test-runtime.ts";
import { createApprovals } from "../approvals/approvals.ts";
import type { AgentProfile } from "../define/agent-profile.ts";
import type { AgentHooks } from "../define/hooks.ts";
import { defineTool } from "../define/tool.ts";
import { createSecretMask } from "../secrets.ts";

const calling =
  (tool: string, input: object = {}): Script =>
  (_call, index) =>
    index === 0 ? { toolCalls: [{ name: tool, input }] } : { text: "Done." };

async function prompt(profile: AgentProfile, script: Script) {
  const model = createScriptedModel(script);
  const agent = createTestAgent(model, profile);
  const events: KitEvent[] = [];
  agent.onEvent((event) => void events.push(event));
  const run = agent.session().prompt("Go.");
  const { text, result, messages } = await run.finally(() => agent.close());
  const reported = messages.find(({ role }) => role === "tool")?.content[0];
  const output =
    reported?.type === "tool_result" ? reported.content.map((part) => ("text" in part ? part.text : "")) : [];
  return {
    text,
    result,
    events,
    output: output.join(),
    isError: reported?.type === "tool_result" && reported.is_error,
    calls: model.calls,
  };
}

const echo = (ran: unknown[] = []) =>
  defineTool({
    name: "echo",
    description: "x",
    input: z.object({ n: z.number().default(1) }),
    execute: ({ n }) => {
      ran.push(n);
      return { n };
    },
  });

test.each([
  [{ rows: [1, 2] }, '{"rows":[1,2]}'],
  [[1, "a"], '[1,"a"]'],
  [7, "7"],
  [null, "null"],
  [undefined, ""],
])("a tool can return any JSON value: %j", async (value, output) => {
  const tool = defineTool({
    name: "give",
    description: "x",
    input: { type: "object" },
    execute: () => value,
  });
  expect((await prompt({ tools: [tool] }, calling("give"))).output).toBe(output);
});

test.each([
  [{ rows: [new Map([["a", 1]])] }, "rows[0] is a Map"],
  [{ id: 1n }, "id is a bigint"],
  [() => 1, "it is a function"],
])(
  "a tool that returns a value that is not JSON fails, and its result names the place: %#",
  async (value, place) => {
    const tool = defineTool({
      name: "give",
      description: "x",
      input: { type: "object" },
      execute: () => value,
    });
    expect(await prompt({ tools: [tool] }, calling("give"))).toMatchObject({
      isError: true,
      output: `The tool returned a value that is not JSON: ${place}.`,
    });
  },
);

test("a tool can return a synchronous generator", async () => {
  const tool = defineTool({
    name: "work",
    description: "x",
    input: { type: "object" },
    *execute() {
      yield { at: 1 };
      return { done: true };
    },
  });
  const { events, output } = await prompt({ tools: [tool] }, calling("work"));
  expect(events).toContainEqual(expect.objectContaining({ type: "tool_progress", progress: { at: 1 } }));
  expect(output).toBe('{"done":true}');
});

test("the values of a generator and of ctx.progress become events, and its last or returned value the result", async () => {
  const tool = defineTool({
    name: "work",
    description: "x",
    input: { type: "object" },
    async *execute(_input, { progress, agent, session }) {
      progress?.({ at: 0, agent, session });
      yield { at: 1 };
      yield { at: 2 };
    },
  });
  const { events, output } = await prompt({ tools: [tool] }, calling("work"));
  const said = events.flatMap((event) => (event.type === "tool_progress" ? [event.progress] : []));
  expect(said).toEqual([{ at: 0, agent: expect.any(String), session: "default" }, { at: 1 }, { at: 2 }]);
  expect(output).toBe('{"at":2}');
});

test("progress is masked before it is cut, so that no part of a secret remains", async () => {
  const token = "sk-abcdefghijklmnopqrstuvwxyz";
  const tool = defineTool({
    name: "work",
    description: "x",
    input: { type: "object" },
    execute: (_input, { progress }) => progress?.({ text: `${"x".repeat(9_975)} ${token}` }),
  });
  const events: KitEvent[] = [];
  const profile: AgentProfile = { tools: [tool], onEvent: (event) => void events.push(event) };
  const agent = createTestAgent(createScriptedModel(calling("work")), profile, {
    mask: createSecretMask([token]),
  });
  await agent
    .session()
    .prompt("Go.")
    .finally(() => agent.close());
  expect(events.some(({ type }) => type === "tool_progress")).toBe(true);
  expect(JSON.stringify(events)).not.toContain("sk-a");
});

test("a beforeTool hook can change arguments, which are validated again, or refuse; one that throws refuses", async () => {
  const ran: unknown[] = [];
  const tools = [echo(ran)];
  const changed = await prompt({ tools, hooks: { beforeTool: () => ({ args: { n: 5 } }) } }, calling("echo"));
  expect(changed.output).toBe('{"n":5}');
  const wrong = await prompt(
    { tools, hooks: { beforeTool: () => ({ args: { n: "five" } }) } },
    calling("echo"),
  );
  expect(wrong).toMatchObject({ isError: true, output: expect.stringContaining("not what echo takes") });
  const refused = await prompt(
    { tools, hooks: { beforeTool: () => ({ refuse: "Not today." }) } },
    calling("echo"),
  );
  expect(refused).toMatchObject({
    isError: true,
    output: "The call was refused, and was not run: Not today.",
  });
  const broken = await prompt(
    {
      tools,
      hooks: {
        beforeTool: () => {
          throw new Error("secret detail");
        },
      },
    },
    calling("echo"),
  );
  expect(broken.output).toBe("The call was refused, and was not run: The hook beforeTool failed.");
  expect(ran).toEqual([5]);
});

test("a call with changed arguments still needs approval", async () => {
  const ran: unknown[] = [];
  const tool = { ...echo(ran), needsApproval: ({ n }: { n: number }) => n > 3 };
  const { output } = await prompt(
    { tools: [tool], hooks: { beforeTool: () => ({ args: { n: 9 } }) } },
    calling("echo"),
  );
  expect(output).toContain("denied");
  expect(ran).toEqual([]);
});

test("the policy applies to the arguments that a hook changed", async () => {
  const root = testFolder(onTestFinished);
  const rewriting = (path: string): AgentProfile => ({
    sandbox: local({ root }),
    allowWrite: true,
    hooks: { beforeTool: () => ({ args: { path, content: "x" } }) },
  });
  for (const path of [".git/hooks/pre-commit", "package.json", "../outside.txt"]) {
    const refused = await prompt(rewriting(path), calling("write", { path: "a.txt", content: "x" }));
    expect(refused.isError, path).toBe(true);
  }
  expect(await readdir(root)).toEqual([]);
  await prompt(rewriting("b.txt"), calling("write", { path: "a.txt", content: "x" }));
  expect(await readdir(root)).toEqual(["b.txt"]);
});

const secret = "hunter2-hunter2";
const failing = (): never => {
  throw new Error(`with ${secret}`);
};
const refusing = () => ({ refuse: `with ${secret}` });

test.each([
  ["beforeModel", failing],
  ["beforeModel", refusing],
  ["afterModel", failing],
  ["afterModel", refusing],
  ["beforeTool", failing],
  ["beforeTool", refusing],
  ["afterTool", failing],
  ["afterTool", refusing],
] as const)("a secret in an error or refusal of %s is masked: %o", async (name, hook) => {
  const events: KitEvent[] = [];
  const profile = {
    tools: [echo()],
    hooks: { [name]: hook },
    onEvent: (event: KitEvent) => void events.push(event),
  };
  const agent = createTestAgent(createScriptedModel(calling("echo")), profile, {
    mask: createSecretMask([secret]),
  });
  const said = await agent
    .session()
    .prompt("Go.")
    .catch((error: unknown) => error);
  await agent.close();
  const texts = [inspect(said, { depth: 10 }), JSON.stringify(events)].join();
  expect(texts).not.toContain(secret);
  if (hook === refusing) expect(texts).toContain("with [secret]");
});

test("an approval request masks a secret that a hook added to the arguments", async () => {
  const { promise, resolve } = Promise.withResolvers<unknown>();
  const approvals = createApprovals();
  const ran: unknown[] = [];
  const tool = defineTool({
    name: "echo",
    description: "x",
    input: { type: "object" },
    needsApproval: true,
    execute: (input) => String(ran.push(input)),
  });
  const profile: AgentProfile = {
    tools: [tool],
    hooks: { beforeTool: () => ({ args: { token: secret } }) },
    onEvent: (event) => void (event.type === "approval_request" && resolve(event)),
  };
  const agent = createTestAgent(createScriptedModel(calling("echo")), profile, {
    approvals,
    mask: createSecretMask([secret]),
  });
  const answer = agent.session().prompt("Go.");
  expect(await promise).toMatchObject({ args: { token: "[secret]" } });
  const [request] = await approvals.list();
  expect(request?.args).toEqual({ token: "[secret]" });
  await approvals.decide(request?.approval_id ?? "", { approved: true });
  await answer.finally(() => agent.close());
  expect(ran).toEqual([{ token: secret }]);
});

test("a hook that returns the change of another hook refuses the call", async () => {
  const ran: unknown[] = [];
  const beforeTool = (() => ({ content: "x" })) as unknown as AgentHooks["beforeTool"];
  const { output } = await prompt({ tools: [echo(ran)], hooks: { beforeTool } }, calling("echo"));
  expect(output).toContain("The hook beforeTool returned neither a change nor a refusal");
  expect(ran).toEqual([]);
});

test("afterTool hooks run in their order, and can change or withhold the result", async () => {
  const hooks = [
    { afterTool: ({ content }: { content: unknown }) => ({ content: `[${JSON.stringify(content)}]` }) },
    { afterTool: () => ({ refuse: "It is private." }) },
  ];
  const [first] = hooks;
  expect((await prompt({ tools: [echo()], hooks: first ?? [] }, calling("echo"))).output).toContain(
    '{\\"n\\":1}',
  );
  expect(await prompt({ tools: [echo()], hooks }, calling("echo"))).toMatchObject({
    isError: true,
    output: "The call was run, and its result is withheld: It is private.",
  });
});

test("model hooks can change or refuse the prompt and the answer", async () => {
  const user = { role: "user", content: [{ type: "text", text: "Changed." }] } as const;
  const { text, calls } = await prompt(
    {
      hooks: {
        beforeModel: ({ prompt: given }) => ({
          prompt: [...given.slice(0, -1), { ...user, content: [...user.content] }],
        }),
        afterModel: () => ({ content: [{ type: "text", text: "Safe." }] }),
      },
    },
    () => ({ text: "Unsafe." }),
  );
  expect(text).toBe("Safe.");
  expect(JSON.stringify(calls[0]?.prompt)).toContain("Changed.");
  for (const hooks of [
    { beforeModel: () => ({ refuse: "No." }) },
    { afterModel: () => ({ refuse: "No." }) },
  ]) {
    await expect(prompt({ hooks }, () => ({ text: "x" }))).rejects.toMatchObject({
      code: "forbidden",
      message: expect.stringContaining("No."),
    });
  }
});

test("the model gets modelSettings, and toolChoice applies to the first answer only", async () => {
  const { calls } = await prompt(
    {
      tools: [echo()],
      modelSettings: { temperature: 0.2, stopSequences: ["END"], toolChoice: "required", seed: 7 },
    },
    calling("echo"),
  );
  expect(calls[0]).toMatchObject({
    temperature: 0.2,
    seed: 7,
    stopSequences: ["END"],
    toolChoice: { type: "required" },
  });
  expect(calls[1]).toMatchObject({ temperature: 0.2 });
  expect(calls[1]?.toolChoice).toBeUndefined();
});

test("builtInTools offers none of kit's tools or the listed ones, and never one that the policy denies", async () => {
  const names = async (profile: AgentProfile) =>
    (await prompt(profile, () => ({ text: "x" }))).calls[0]?.tools?.map(({ name }) => name) ?? [];
  expect(await names({ builtInTools: false })).toEqual([]);
  expect(await names({ builtInTools: ["read", "write"] })).toEqual(["read"]);
  expect(await names({ builtInTools: ["read", "write"], allowWrite: true })).toEqual(["read", "write"]);
});

test("the agent's output schema applies to each prompt without a schema of its own", async () => {
  const { result } = await prompt({ output: z.object({ n: z.number() }) }, (_call, index) => ({
    text: index === 0 ? "none" : '{"n": 3}',
  }));
  expect(result).toEqual({ n: 3 });
});

test("a profile accepts a model object of the AI SDK", async () => {
  const model = createScriptedModel(() => ({ text: "Mine." }));
  expect((await prompt({ model }, () => ({ text: "The project's." }))).text).toBe("Mine.");
});
