import { expect, test } from "vitest";
import type { KitEvent } from "../../protocol/event.ts";
import { createScriptedModel } from "../../testing/scripted-model.ts";
import { createTestAgent } from "../../testing/test-runtime.ts";
import { defineCommand, defineTool } from "../define/tool.ts";
import { createApprovals } from "./approvals.ts";
import { open, payThenSay, resultOf } from "./paying-agent.suite.ts";

test("a call that needs approval waits, and runs once it is approved", async () => {
  const { agent, ran, events, waiting } = open();
  const { answer, approval_id } = await waiting();
  expect(ran).toEqual([]);
  expect(await agent.approvals.list()).toMatchObject([
    {
      approval_id,
      tool: "pay",
      tool_call_id: "c1",
      args: { amount: 5 },
      session: "default",
      agent: "tester",
    },
  ]);
  await agent.approvals.decide(approval_id, { approved: true, by: "ann" });
  expect((await answer).text).toBe("Done.");
  expect(ran).toEqual(["pay 5"]);
  expect(await agent.approvals.list()).toEqual([]);
  const types = events.map((event) => event.type);
  const order = ["tool_start", "approval_request", "approval", "tool_end"] as const;
  expect(types.filter((type) => order.some((each) => each === type))).toEqual(order);
  expect(events.find((event) => event.type === "approval")).toMatchObject({ approved: true, by: "ann" });
});

test("the model reads a denial and its reason as the result of the call", async () => {
  const { ran, decided } = open();
  const { answer } = await decided({
    approved: false,
    reason: "Too much.",
    by: "ann",
  });
  const { messages } = await answer;
  expect(resultOf(messages)).toMatchObject({ is_error: true });
  const said = JSON.stringify(resultOf(messages).content);
  expect(said).toContain("The call was denied by ann, and was not run.");
  expect(said).toContain("Reason: Too much.");
  expect(ran).toEqual([]);
});

test.each([
  [undefined, ""],
  [" ", ""],
  [" Too much.\n", "\nReason: Too much."],
])("a denial without a name and with the reason %j shows only what was given", async (reason, why) => {
  const { decided } = open();
  const word = { approved: false, ...(reason === undefined ? {} : { reason }) };
  const { answer } = await decided(word);
  expect(resultOf((await answer).messages).content).toEqual([
    {
      type: "text",
      text: `The call was denied, and was not run. Do not repeat it unless you are told to.${why}`,
    },
  ]);
});

// With an approval, built-in tools can use protected paths and secret files.
test.each([
  ["approved by a person", true, true],
  ["without needsApproval", false, false],
  ["found to need no approval", async () => false, false],
])(
  "`approved` tells a tool whether a person approved its call: %s",
  async (_how, needsApproval, approved) => {
    const ran: string[] = [];
    const { agent, asked } = open({
      tool: { needsApproval, execute: (_input, context) => `${ran.push(`${context.approved}`)}` },
    });
    const request = asked();
    const answer = agent.session().prompt("pay");
    if (approved) await agent.approvals.decide((await request).approval_id, { approved: true });
    await answer;
    expect(ran).toEqual([`${approved}`]);
  },
);

test("a decision counts once, and only at the agent of the request", async () => {
  const approvals = createApprovals();
  const { agent, waiting } = open({ over: { approvals } });
  const other = createTestAgent(createScriptedModel([]), {}, { approvals, id: "2" });
  const { answer, approval_id } = await waiting();
  const notFound = { code: "not_found" };
  await expect(other.approvals.decide(approval_id, { approved: true })).rejects.toMatchObject(notFound);
  expect(await other.approvals.list()).toEqual([]);
  expect(await agent.approvals.list({ session: "another" })).toEqual([]);
  await agent.approvals.decide(approval_id, { approved: false });
  await expect(agent.approvals.decide(approval_id, { approved: true })).rejects.toMatchObject(notFound);
  await answer;
});

test("without configured approvals, a call that needs one is denied at once", async () => {
  const events: KitEvent[] = [];
  const pay = defineTool({
    name: "pay",
    description: "Pays.",
    input: { type: "object" },
    needsApproval: true,
    execute: () => "paid",
  });
  const agent = createTestAgent(createScriptedModel(payThenSay), {
    tools: [pay],
    onEvent: (event) => events.push(event),
  });
  const { messages } = await agent.session().prompt("pay");
  expect(JSON.stringify(resultOf(messages).content)).toContain("No approvals are set up here.");
  expect(events.map((event) => event.type)).not.toContain("approval_request");
  expect(events.find((event) => event.type === "approval")).toMatchObject({ approved: false });
  await expect(agent.approvals.decide("approval_1", { approved: true })).rejects.toMatchObject({
    code: "not_found",
  });
});

test("an undecided call is denied when its time limit ends", async () => {
  const { agent, events, ran } = open({ over: { approvals: createApprovals({ timeoutMs: 5 }) } });
  const { messages } = await agent.session().prompt("pay");
  expect(JSON.stringify(resultOf(messages).content)).toContain("It was not approved in time.");
  expect(events.find((event) => event.type === "approval_request")).toMatchObject({
    expires_at: expect.stringMatching(/^\d{4}-/),
  });
  expect(ran).toEqual([]);
});

test("a call above the limit of waiting calls is denied", async () => {
  const { agent, asked } = open({
    over: { approvals: createApprovals({ maxWaiting: 1 }) },
    script: ({ prompt }) =>
      prompt.at(-1)?.role === "tool"
        ? { text: "Done." }
        : {
            toolCalls: [
              { name: "pay", id: "c1", input: { amount: 1 } },
              { name: "pay", id: "c2" },
            ],
          },
  });
  const request = asked();
  const refused = new Promise<void>((resolve) => {
    agent.onEvent((event) => {
      if (event.type === "approval" && !event.approved) resolve();
    });
  });
  const answer = agent.session().prompt("pay");
  await refused;
  await agent.approvals.decide((await request).approval_id, { approved: true });
  const results = (await answer).messages[2]?.content;
  expect(results).toMatchObject([{ is_error: false }, { is_error: true }]);
});

test("waiting for approval does not count against the tool's time limit", async () => {
  const { agent, ran, waiting } = open({ tool: { timeoutMs: 1, execute: async () => "paid at last" } });
  const { answer, approval_id } = await waiting();
  await new Promise((resolve) => setTimeout(resolve, 10));
  await agent.approvals.decide(approval_id, { approved: true });
  expect(JSON.stringify(resultOf((await answer).messages).content)).toContain("paid at last");
  expect(ran).toEqual([]);
});

test("an abort ends the wait and leaves a history that the next prompt can use", async () => {
  const { agent, asked, ran } = open();
  const session = agent.session();
  const request = asked();
  const answer = session.prompt("pay");
  await request;
  await session.abort();
  await expect(answer).rejects.toMatchObject({ code: "aborted" });
  expect(await agent.approvals.list()).toEqual([]);
  expect(resultOf(await session.history())).toMatchObject({ is_error: true });
  expect((await session.prompt("guess")).text).toBe("Done.");
  expect(ran).toEqual([]);
});

test.each([
  ["small enough", 5, 0],
  ["too large", 500, 1],
])("a needsApproval function decides by the arguments: %s", async (_name, amount, requests) => {
  const { agent, events, asked } = open({
    tool: { needsApproval: async (input) => (input.amount ?? 0) > 100 },
    script: ({ prompt }) =>
      prompt.at(-1)?.role === "tool"
        ? { text: "Done." }
        : { toolCalls: [{ name: "pay", input: { amount } }] },
  });
  const request = asked();
  const answer = agent.session().prompt("pay");
  if (requests > 0) await agent.approvals.decide((await request).approval_id, { approved: true });
  await answer;
  expect(events.filter((event) => event.type === "approval_request")).toHaveLength(requests);
});

test("a needsApproval function that throws denies the call", async () => {
  const { agent, ran } = open({
    tool: {
      needsApproval: () => {
        throw new Error("The ledger is closed.");
      },
    },
  });
  const { messages } = await agent.session().prompt("pay");
  expect(resultOf(messages)).toMatchObject({ is_error: true, content: [{ text: "The ledger is closed." }] });
  expect(ran).toEqual([]);
});

test.each([
  ["pay", true],
  ["p*", true],
  ["*", true],
  ["*a*", true],
  ["pa*y", true],
  ["pay*y", false],
  ["pa", false],
  ["bash", false],
])("the approval rule %s applies to pay: %s", async (pattern, requires) => {
  const { agent, events } = open({
    tool: { needsApproval: false },
    profile: { approvals: { tools: [pattern], timeoutMs: 1 } },
  });
  await agent.session().prompt("pay");
  expect(events.some((event) => event.type === "approval_request")).toBe(requires);
});

test("the names of the calls within a call count for approval rules, too", async () => {
  const { agent, events } = open({
    tool: { needsApproval: false, standsFor: () => "mcp__bank__transfer" },
    profile: { approvals: { tools: ["mcp__bank__*"], timeoutMs: 1 } },
  });
  await agent.session().prompt("pay");
  expect(events.some((event) => event.type === "approval_request")).toBe(true);
});

test("a command can need approval", async () => {
  const ran: string[] = [];
  const deploy = defineCommand(
    "deploy",
    () => {
      ran.push("deploy");
      return "deployed";
    },
    { needsApproval: true },
  );
  const { agent, asked } = open({
    profile: { commands: [deploy] },
    script: ({ prompt }) =>
      prompt.at(-1)?.role === "tool" ? { text: "Done." } : { toolCalls: [{ name: "deploy" }] },
  });
  const request = asked();
  const answer = agent.session().prompt("deploy");
  const { approval_id } = await request;
  expect(ran).toEqual([]);
  await agent.approvals.decide(approval_id, { approved: true });
  await answer;
  expect(ran).toEqual(["deploy"]);
});

test("a task requests approval under the rules of its parent", async () => {
  const { agent, ran, waiting } = open({
    tool: { needsApproval: false },
    profile: { approvals: { tools: ["pay"] }, subagents: [] },
    script: (call) => {
      const { prompt } = call;
      if (prompt.at(-1)?.role === "tool") return { text: "Done." };
      return JSON.stringify(prompt[1]).includes("child")
        ? { toolCalls: [{ name: "pay", input: { amount: 7 } }] }
        : { toolCalls: [{ name: "task", input: { prompt: "child" } }] };
    },
  });
  const { answer, approval_id, task_id } = await waiting();
  expect(task_id).toMatch(/^task_/);
  expect(await agent.approvals.list()).toMatchObject([{ approval_id, task_id }]);
  await agent.approvals.decide(approval_id, { approved: true });
  await answer;
  expect(ran).toEqual(["pay 7"]);
});

test("waiting calls leave no timers", async () => {
  const timers = (): number => process.getActiveResourcesInfo().filter((kind) => kind === "Timeout").length;
  const before = timers();
  const positions = Array.from({ length: 20 }, () => open({ over: { modelIdleTimeoutMs: 10 } }));
  const answers = positions.map(async ({ agent, asked }) => {
    const request = asked();
    const answer = agent.session().prompt("pay");
    return { answer, approval_id: (await request).approval_id };
  });
  const asked = await Promise.all(answers);
  // The timer of the model call stops itself the next time it fires.
  await new Promise((resolve) => setTimeout(resolve, 20));
  expect(timers() - before).toBeLessThan(10);
  for (const [at, { answer, approval_id }] of asked.entries()) {
    await positions[at]?.agent.approvals.decide(approval_id, { approved: true });
    expect((await answer).text).toBe("Done.");
  }
});
