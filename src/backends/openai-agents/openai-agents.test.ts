import { execFileSync } from "node:child_process";
import { Agent, handoff, type JsonSchemaDefinition } from "@openai/agents";
import { expect, test } from "vitest";
import { createApprovals } from "../../agents/approvals/approvals.ts";
import { InMemorySessionStore } from "../../stores/memory/memory-store.ts";
import { nextEvent, openStage, requires, resultsOf, rolesOf } from "../../testing/backend/backend-stage.ts";
import type { Script, ScriptedTurn } from "../../testing/scripted-model.ts";
import { backendContract } from "../contract.suite.ts";
import type { BackendChoice } from "../contract.ts";
import { type OpenAiAgentsWork, openaiAgents } from "./openai-agents.ts";

backendContract({ name: "openai_agents", create: () => "openai_agents" });

const stageOf = (backend: BackendChoice, script: Script, over = {}) =>
  openStage({ create: () => backend }, { script, ...over });

/** A desk that hands over to billing, which hands back. */
function shop({ tools }: OpenAiAgentsWork) {
  const billing: Agent = new Agent({ name: "Billing", instructions: "You bill.", tools });
  const reception = new Agent({ name: "Desk", instructions: "You greet.", handoffs: [billing] });
  billing.handoffs = [reception];
  return reception;
}

/** Notes who is asked: the prompts that a scripted model keeps go on changing. */
function noting(script: readonly ScriptedTurn[], asked: string[]): Script {
  let turn = 0;
  return ({ prompt }) => {
    const system = JSON.stringify(prompt[0]);
    asked.push(
      ["You greet.", "You bill.", "You are Repairs."].find((words) => system.includes(words)) ?? system,
    );
    turn += 1;
    return script[turn - 1] ?? { error: new Error("one turn too many") };
  };
}

const toBilling = { toolCalls: [{ name: "transfer_to_Billing", input: {} }] };
const toReception = { toolCalls: [{ name: "transfer_to_Desk", input: {} }] };

test("the agent that the work is handed to goes on with its own words and tools, shown as a task", async () => {
  const asked: string[] = [];
  const script = [toBilling, requires("lamp"), toReception, { text: "Bye." }];
  const stage = stageOf(openaiAgents(shop), noting(script, asked));
  expect((await stage.agent.session().prompt("the lamp?")).text).toBe("Bye.");
  expect(stage.ran).toEqual(["price lamp"]);
  expect(asked).toEqual(["You greet.", "You bill.", "You bill.", "You greet."]);
  const offered = stage.model.calls.map(({ tools = [] }) => [
    tools.some(({ name }) => name === "price"),
    tools.at(-1)?.name,
  ]);
  expect(offered).toEqual([
    [false, "transfer_to_Billing"],
    [true, "transfer_to_Desk"],
    [true, "transfer_to_Desk"],
    [false, "transfer_to_Billing"],
  ]);
  const tasks = stage.events.flatMap((event): readonly unknown[] => {
    if (event.type === "task_start") return [["start", event.task_agent, event.tool_call_id !== undefined]];
    if (event.type === "task_end") return [["end", event.is_error]];
    return event.type === "tool_start" ? [event.tool] : [];
  });
  expect(tasks).toEqual([
    "transfer_to_Billing",
    ["start", "Billing", true],
    "price",
    "transfer_to_Desk",
    ["end", false],
    ["start", "Desk", true],
    ["end", false],
  ]);
  expect(stage.events.at(-2)?.type).toBe("operation");
  expect(rolesOf(await stage.log())).toBe("user assistant tool assistant tool assistant tool assistant");
});

test("events of the agent that goes on carry the id of its task, those of the handoff that of the part before", async () => {
  const stage = stageOf(openaiAgents(shop), [toBilling, requires("lamp"), toReception, { text: "Bye." }]);
  await stage.agent.session().prompt("the lamp?");
  const agents = new Map<string | undefined, string | undefined>();
  const seen: string[] = [];
  for (const { type, task_id, ...event } of stage.events) {
    if ("task_agent" in event) agents.set(task_id, event.task_agent);
    if (["turn_request", "tool_start", "tool_end", "text_delta", "operation"].includes(type))
      seen.push(`${type} ${agents.get(task_id) ?? "-"}`);
  }
  expect(seen).toEqual([
    ...["turn_request -", "tool_start -", "tool_end -"],
    ...["turn_request Billing", "tool_start Billing", "tool_end Billing"],
    ...["turn_request Billing", "tool_start Billing", "tool_end Billing"],
    ...["turn_request Desk", "text_delta Desk", "operation -"],
  ]);
});

test("a repair is a part of the task of the agent that gives it, and so is an approval", async () => {
  const schema = { type: "object", properties: { sum: { type: "number" } }, required: ["sum"] };
  const pay = { toolCalls: [{ name: "pay", input: { amount: 5 } }] };
  const script = [toBilling, pay, { text: "twelve" }, { text: '{"sum": 12}' }];
  const stage = stageOf(openaiAgents(shop), script, { over: { approvals: createApprovals() } });
  const request = nextEvent(stage.agent, "approval_request");
  const answer = stage.agent.session().prompt("sum up", { result: schema });
  const { approval_id, task_id } = await request;
  expect(task_id).toMatch(/^task_/);
  expect(await stage.agent.approvals.list()).toMatchObject([{ approval_id, task_id }]);
  await stage.agent.approvals.decide(approval_id, { approved: true });
  expect((await answer).result).toEqual({ sum: 12 });
  const repairs = stage.events.filter((event) => event.type === "turn" && event.purpose === "repair");
  expect(repairs.map((event) => event.task_id)).toEqual([task_id]);
  expect(stage.events.filter(({ type }) => type === "task_end")).toHaveLength(1);
});

test("an agent that fails ends its task as failed", async () => {
  const refused = Object.assign(new Error("no"), { statusCode: 404 });
  const stage = stageOf(openaiAgents(shop), [toBilling, { error: refused }]);
  await expect(stage.agent.session().prompt("go")).rejects.toMatchObject({ code: "model_error" });
  const ends = stage.events.flatMap((event) => (event.type === "task_end" ? [event.is_error] : []));
  expect(ends).toEqual([true]);
});

test("the first of two agents in one turn goes on, and the model is told", async () => {
  const two = ({ tools }: OpenAiAgentsWork) =>
    new Agent({
      name: "Desk",
      handoffs: ["Billing", "Repairs"].map(
        (name) => new Agent({ name, instructions: `You are ${name}.`, tools }),
      ),
    });
  const both = {
    toolCalls: ["Repairs", "Billing"].map((name) => ({ name: `transfer_to_${name}`, id: name })),
  };
  const asked: string[] = [];
  const stage = stageOf(openaiAgents(two), noting([both, { text: "Fixed." }], asked));
  expect((await stage.agent.session().prompt("go")).text).toBe("Fixed.");
  expect(asked[1]).toBe("You are Repairs.");
  expect(resultsOf(await stage.log())[1]).toMatch(/handed to another agent/);
  expect(stage.events.filter(({ type }) => type === "task_start")).toHaveLength(1);
});

test("a handoff that the agent's policy puts under approval and a person denies does not take place", async () => {
  const rules = {
    profile: { approvals: { tools: ["transfer_to_*"] } },
    over: { approvals: createApprovals() },
  };
  const asked: string[] = [];
  const stage = stageOf(openaiAgents(shop), noting([toBilling, { text: "I stay." }], asked), rules);
  const request = nextEvent(stage.agent, "approval_request");
  const answer = stage.agent.session().prompt("go");
  await stage.agent.approvals.decide((await request).approval_id, { approved: false });
  expect((await answer).text).toBe("I stay.");
  expect(asked).toEqual(["You greet.", "You greet."]);
  expect(stage.events.filter(({ type }) => type === "task_start")).toEqual([]);
});

test("a repair, and work after a crash, go on with the agent that has it; a new question begins anew", async () => {
  const schema = { type: "object", properties: { sum: { type: "number" } }, required: ["sum"] };
  const script = [toBilling, { text: "twelve" }, { text: '{"sum": 12}' }, { text: "Hello again." }];
  const asked: string[] = [];
  const stage = stageOf(openaiAgents(shop), noting(script, asked));
  const session = stage.agent.session();
  expect((await session.prompt("sum up", { result: schema })).result).toEqual({ sum: 12 });
  expect((await session.prompt("hello")).text).toBe("Hello again.");
  expect(asked).toEqual(["You greet.", "You bill.", "You bill.", "You greet."]);

  const store = new InMemorySessionStore();
  const hang: Script = ({ prompt }) =>
    prompt.at(-1)?.role === "tool" ? { deltas: ["…"], delayMs: 1e6 } : toBilling;
  const first = stageOf(openaiAgents(shop), hang, { over: { store } });
  const dying = first.agent.session().prompt("go", { operationId: "op_1" });
  dying.catch(() => undefined);
  await expect.poll(() => first.model.calls).toHaveLength(2);
  const again: string[] = [];
  const second = stageOf(openaiAgents(shop), noting([{ text: "Billed." }], again), { over: { store } });
  expect((await second.agent.session().prompt("go", { operationId: "op_1" })).text).toBe("Billed.");
  expect(again).toEqual(["You bill."]);
});

test("agents that are given whole get the operation's tools, and serve operations side by side", async () => {
  const backend = openaiAgents({ agent: new Agent({ name: "Desk", instructions: "You greet." }) });
  const script: Script = ({ prompt }) =>
    prompt.at(-1)?.role === "tool" ? { text: "done" } : requires("cup");
  const stages = [stageOf(backend, script), stageOf(backend, script)];
  const texts = await Promise.all(stages.map(async ({ agent }) => (await agent.session().prompt("go")).text));
  expect(texts).toEqual(["done", "done"]);
  for (const { ran } of stages) expect(ran).toEqual(["price cup"]);
});

test("an agent's typed output is asked of the provider, and what does not fit is an error", async () => {
  const outputType = {
    type: "json_schema",
    name: "sum",
    strict: true,
    schema: {
      type: "object",
      properties: { sum: { type: "number" } },
      required: ["sum"],
      additionalProperties: false,
    },
  } satisfies JsonSchemaDefinition;
  const backend = openaiAgents(({ tools }) => new Agent({ name: "Sums", tools, outputType }));
  const stage = stageOf(backend, [requires("cup"), { text: 'It is {"sum": 12}' }, { text: "twelve" }]);
  const session = stage.agent.session();
  expect((await session.prompt("sum")).text).toContain('{"sum": 12}');
  await expect(session.prompt("again")).rejects.toMatchObject({ code: "typed_output" });
});

test("an agent may stop at the result of a tool, which is the answer", async () => {
  const backend = openaiAgents(
    ({ tools }) => new Agent({ name: "Quick", tools, toolUseBehavior: "stop_on_first_tool" }),
  );
  const stage = stageOf(backend, [requires("cup")]);
  expect((await stage.agent.session().prompt("go")).text).toBe("cup costs 12");
});

test("an option that kit could not enforce is refused before the model is asked", async () => {
  const own = { type: "function", name: "rm", description: "", parameters: {}, strict: false } as never;
  const filtered = handoff(new Agent({ name: "B" }), { inputFilter: (data) => data });
  for (const [agent, said] of [
    [new Agent({ name: "A", tools: [own] }), /a tool "rm" that the operation does not have/],
    [new Agent({ name: "A", handoffs: [new Agent({ name: "B", tools: [own] })] }), /"B" has a tool "rm"/],
    [new Agent({ name: "A", handoffs: [filtered] }), /inputFilter/],
    [new Agent({ name: "A", mcpServers: [{} as never] }), /MCP servers of its own/],
  ] as const) {
    const stage = stageOf(openaiAgents({ agent }), []);
    await expect(stage.agent.session().prompt("go")).rejects.toMatchObject({
      code: "invalid_request",
      message: expect.stringMatching(said),
    });
    expect(stage.model.calls).toEqual([]);
  }
});

test("the package says nothing, sends nothing and leaves signals to kit", () => {
  const program = `
    const { openaiAgents } = await import("./src/backends/openai-agents/openai-agents.ts");
    const { openStage } = await import("./src/testing/backend/backend-stage.ts");
    globalThis.fetch = () => { throw new Error("sent"); };
    const stage = openStage({ create: () => openaiAgents() }, { script: [{ toolCalls: [{ name: "fail" }] }, { text: "done" }] });
    await stage.agent.session().prompt("go");
    const names = ["SIGINT", "SIGTERM", "unhandledRejection", "beforeExit"];
    console.log(names.map((name) => process.listenerCount(name)).join());
  `;
  const env = { ...process.env, OPENAI_API_KEY: "sk-canary" };
  const out = execFileSync(process.execPath, ["--input-type=module", "-e", program], {
    env,
    encoding: "utf8",
    stdio: "pipe",
  });
  expect(out).toBe("0,0,0,0\n");
});
