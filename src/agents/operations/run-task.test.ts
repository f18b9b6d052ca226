import { expect, onTestFinished, test } from "vitest";
import type { KitEvent } from "../../protocol/event.ts";
import { virtual } from "../../sandboxes/virtual/virtual-sandbox.ts";
import { InMemorySessionStore } from "../../stores/memory/memory-store.ts";
import { readAll } from "../../testing/read-all.ts";
import { createScriptedModel } from "../../testing/scripted-model.ts";
import { testFolder } from "../../testing/test-folder.ts";
import { createTestAgent } from "../../testing/test-runtime.ts";
import type { AgentProfile } from "../define/agent-profile.ts";
import { defineTool } from "../define/tool.ts";
import { forkEntries } from "../log/fork.ts";
import { joinInstructions } from "../log/left-out-rules.ts";

const shared = {
  sandbox: {
    name: "none",
    open: async () => {
      throw new Error("no sandbox here");
    },
  },
};

function textPrompt(prompt: readonly { readonly role: string; readonly content: unknown }[]): string {
  return JSON.stringify(prompt.filter((message) => message.role === "user"));
}

test("a task has its own history, and its answer is returned", async () => {
  const model = createScriptedModel((call) => ({
    text: textPrompt(call.prompt).includes("secret plan") ? "saw it" : "did not see it",
  }));
  const session = createTestAgent(model, {}, shared).session();
  await session.prompt("secret plan");
  expect((await session.task("do you see it?")).text).toBe("did not see it");
  expect(await session.history()).toHaveLength(2);
});

test("the model starts a task with the task tool, under a subagent's own instructions", async () => {
  const model = createScriptedModel((call) => {
    const system = JSON.stringify(call.prompt[0]);
    if (system.includes("You count")) return { text: "three" };
    return call.prompt.length === 2
      ? { toolCalls: [{ name: "task", input: { prompt: "count", agent: "counter" } }] }
      : { text: "It is three." };
  });
  const events: KitEvent[] = [];
  const agent = createTestAgent(
    model,
    { subagents: [{ name: "counter", instructions: "You count." }], onEvent: (event) => events.push(event) },
    shared,
  );
  expect((await agent.session().prompt("how many?")).text).toBe("It is three.");
  const child = events.find((event) => event.type === "operation_start" && event.task_id !== undefined);
  const parent = events.find((event) => event.type === "operation_start");
  expect(child?.parent_operation_id).toBe(parent?.operation_id);
});

test("the events of a task contain its id, its role and its subagent, also in a nested task", async () => {
  const model = createScriptedModel((call) => {
    const said = textPrompt(call.prompt);
    const isRepeated = said.includes("outer") && call.prompt.at(-1)?.role !== "tool";
    return isRepeated ? { toolCalls: [{ name: "task", input: { prompt: "inner" } }] } : { text: "done" };
  });
  const events: KitEvent[] = [];
  const onEvent = (event: KitEvent): void => {
    events.push(event);
  };
  const agent = createTestAgent(model, { subagents: [{ name: "helper" }], onEvent }, shared);
  const role = { name: "careful", description: "", instructions: "Be careful." };
  await agent.session().task("outer", { agent: "helper", role });

  const starts = events.filter((event) => event.type === "task_start");
  expect(starts).toMatchObject([
    { prompt: "outer", task_agent: "helper", role: "careful" },
    { prompt: "inner" },
  ]);
  for (const { task_id, operation_id } of starts) {
    const work = events.find((event) => event.type === "operation_start" && event.task_id === task_id);
    expect(work?.parent_operation_id).toBe(operation_id);
  }
  const ends = events.filter((event) => event.type === "task_end");
  expect(ends.map((event) => event.task_id)).toEqual(starts.map((event) => event.task_id).reverse());
});

test("a subagent has only the rights it was granted", async () => {
  const seen: string[][] = [];
  const model = createScriptedModel((call) => {
    seen.push((call.tools ?? []).map((tool) => tool.name));
    return { text: "x" };
  });
  const agent = createTestAgent(
    model,
    { allowWrite: true, allowShell: true, subagents: [{ name: "reader" }] },
    shared,
  );
  await agent.session().prompt("a");
  await agent.session().task("b", { agent: "reader" });
  expect(seen[0]).toEqual(expect.arrayContaining(["write", "bash"]));
  expect(seen[1]).not.toEqual(expect.arrayContaining(["write"]));
  expect(seen[1]).not.toEqual(expect.arrayContaining(["bash"]));
});

test("a subagent with allowWrite does not inherit the protected paths granted to its parent", async () => {
  const folder = testFolder(onTestFinished);
  const model = createScriptedModel(({ prompt }) =>
    prompt.at(-1)?.role === "tool"
      ? { text: JSON.stringify(prompt.at(-1)?.content) }
      : { toolCalls: [{ name: "write", input: { path: ".git/hooks/x", content: "x" } }] },
  );
  const granted: AgentProfile = {
    sandbox: virtual({ folder }),
    allowWrite: true,
    allowProtectedPaths: [".git/hooks"],
    subagents: [{ name: "writer", allowWrite: true }],
  };
  const session = createTestAgent(model, granted).session();
  expect((await session.prompt("a")).text).toContain("Wrote");
  expect((await session.task("b", { agent: "writer" })).text).toContain("is protected");
});

test.each([
  ["as many as the profile says", { maxTaskDepth: 3 }, 3],
  ["eight by default", {}, 8],
])("the depth of nested tasks is limited: %s", async (_, profile, levels) => {
  let deepest = 0;
  const model = createScriptedModel((call) => {
    const last = call.prompt.at(-1);
    if (last?.role === "tool") return { text: JSON.stringify(last.content) };
    deepest += 1;
    return { toolCalls: [{ name: "task", input: { prompt: "deeper" } }] };
  });
  const { text } = await createTestAgent(model, profile, shared).session().prompt("go");
  // The prompt and its nested tasks.
  expect(deepest).toBe(1 + levels);
  expect(text).toContain(`${levels} levels deep`);
});

test("aborting a session aborts its nested tasks", async () => {
  let aborted = false;
  const wait = defineTool({
    name: "wait",
    description: "Waits.",
    input: { type: "object" },
    execute: (_input, { signal }) =>
      new Promise<string>((_resolve, reject) => {
        signal.addEventListener("abort", () => {
          aborted = true;
          reject(signal.reason);
        });
      }),
  });
  const model = createScriptedModel((call) =>
    textPrompt(call.prompt).includes("child")
      ? { toolCalls: [{ name: "wait" }] }
      : { toolCalls: [{ name: "task", input: { prompt: "child" } }] },
  );
  const agent = createTestAgent(model, { tools: [wait] }, shared);
  const session = agent.session();
  const stream = session.stream("go");
  await readAll(stream, (event) => {
    if (event.type === "tool_start" && event.tool === "wait") setTimeout(() => void session.abort(), 10);
  });
  await expect(stream.result).rejects.toMatchObject({ code: "aborted" });
  expect(aborted).toBe(true);
});

test("deleting a session deletes the sessions of its nested tasks", async () => {
  const store = new InMemorySessionStore();
  const agent = createTestAgent(
    createScriptedModel(() => ({ text: "x" })),
    {},
    { ...shared, store },
  );
  await agent.session("a").task("one");
  await agent.session("a").prompt("two");
  expect(await agent.sessions.list()).toHaveLength(2);
  await agent.sessions.delete("a");
  expect(await agent.sessions.list()).toEqual([]);
});

test("two calls of one turn with the same id start two tasks", async () => {
  const model = createScriptedModel(({ prompt }) => {
    if (prompt.at(-1)?.role === "tool") return { text: "both" };
    const said = textPrompt(prompt.slice(1, 2));
    if (said.includes("part")) return { text: `done ${said.includes("part 1") ? "one" : "two"}` };
    return {
      toolCalls: [
        { name: "task", id: "same", input: { prompt: "part 1" } },
        { name: "task", id: "same", input: { prompt: "part 2" } },
      ],
    };
  });
  const { messages } = await createTestAgent(model, {}, shared).session().prompt("go");
  expect(JSON.stringify(messages[2])).toMatch(/done one.*done two/);
});

test("a rule that a fork leaves out is left out in its tasks, too", async () => {
  const rule = "Amounts are whole cents.";
  const repository = {
    workingFolder: "",
    tools: undefined,
    instructions: () => ({
      ...joinInstructions([{ id: "AGENTS.md", path: "AGENTS.md", line: 1, text: rule }]),
      sources: new Set(["AGENTS.md"]),
    }),
    guidelinesFor: async () => [],
    sourceAt: async () => undefined,
    rules: async () => [],
  };
  const store = new InMemorySessionStore();
  const model = createScriptedModel(({ prompt }) => ({
    text: JSON.stringify(prompt[0]).includes(rule) ? "told" : "not told",
  }));
  const agent = createTestAgent(
    model,
    { subagents: [{ name: "counter", instructions: "You count." }] },
    { ...shared, store, project: { tools: [], repositoryAt: () => repository, stateAt: () => undefined } },
  );
  const origin = {
    session: "default",
    turn_id: "t1",
    log_position: 0,
    operation_id: "op_1",
    without: ["AGENTS.md"],
  };
  const entries = forkEntries([], origin, { id: "op_2", timestamp: "2026-11-23T10:00:00.000Z" });
  await store.append({ key: { agent: "tester", instance_id: "1", session: "free" }, entries, expected: 0 });
  for (const [session, answer] of [
    ["free", "not told"],
    ["default", "told"],
  ] as const) {
    for (const options of [{}, { agent: "counter" }])
      expect((await agent.session(session).task("Which rules have you?", options)).text).toBe(answer);
  }
});
