import { execFileSync } from "node:child_process";
import { Agent, handoff, type JsonSchemaDefinition } from "@openai/agents";
import { expect, test } from "vitest";
import { createApprovals } from "../../agents/approvals/approvals.ts";
import { nextEvent, openStage, requires } from "../../testing/backend/backend-stage.ts";
import type { Script } from "../../testing/scripted-model.ts";
import { backendContract } from "../contract.suite.ts";
import type { BackendChoice } from "../contract.ts";
import { handoverTests, instructions, sums } from "../handover.suite.ts";
import { type OpenAiAgentsWork, openaiAgents } from "./openai-agents.ts";

backendContract({ name: "openai_agents", create: () => "openai_agents" });

const stageOf = (backend: BackendChoice, script: Script, over = {}) =>
  openStage({ create: () => backend }, { script, ...over });

/** A desk that hands over to Billing and Repairs; Billing may hand over again. */
function shop({ tools }: OpenAiAgentsWork) {
  const { Desk, Billing, Repairs } = instructions;
  const billing: Agent = new Agent({ name: "Billing", instructions: Billing, tools });
  const repairs = new Agent({ name: "Repairs", instructions: Repairs, tools });
  const reception = new Agent({ name: "Desk", instructions: Desk, handoffs: [billing, repairs] });
  billing.handoffs = [reception, repairs];
  return reception;
}

const outputType = {
  type: "json_schema",
  name: "sum",
  strict: true,
  schema: { ...sums, type: "object", required: ["sum"], additionalProperties: false },
} satisfies JsonSchemaDefinition;

const own = { type: "function", name: "rm", description: "", parameters: {}, strict: false } as never;
const filtered = handoff(new Agent({ name: "B" }), { inputFilter: (data) => data });
const A = (config: Partial<ConstructorParameters<typeof Agent>[0]>) =>
  openaiAgents({ agent: new Agent({ name: "A", ...config }) });

handoverTests({
  shop: () => openaiAgents(shop),
  whole: () => openaiAgents({ agent: new Agent({ name: "Desk", instructions: instructions.Desk }) }),
  typed: () => openaiAgents(({ tools }) => new Agent({ name: "Sums", tools, outputType })),
  refused: () => [
    [A({ tools: [own] }), /a tool "rm" that the operation does not have/],
    [A({ handoffs: [new Agent({ name: "B", tools: [own] })] }), /"B" has a tool "rm"/],
    [A({ handoffs: [filtered as never] }), /inputFilter/],
    [A({ mcpServers: [{} as never] }), /MCP servers of its own/],
  ],
  call: (agent) => ({ name: `transfer_to_${agent}`, input: {} }),
  offers: (tools) => tools.flatMap(({ name }) => /^transfer_to_(.*)/.exec(name)?.slice(1) ?? []),
  second: /handed to another agent/,
});

const toBilling = { toolCalls: [{ name: "transfer_to_Billing", input: {} }] };
const toReception = { toolCalls: [{ name: "transfer_to_Desk", input: {} }] };

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
  const pay = { toolCalls: [{ name: "pay", input: { amount: 5 } }] };
  const script = [toBilling, pay, { text: "twelve" }, { text: '{"sum": 12}' }];
  const stage = stageOf(openaiAgents(shop), script, { over: { approvals: createApprovals() } });
  const request = nextEvent(stage.agent, "approval_request");
  const answer = stage.agent.session().prompt("sum up", { result: sums });
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

test("an agent may stop at the result of a tool, which is the answer", async () => {
  const backend = openaiAgents(
    ({ tools }) => new Agent({ name: "Quick", tools, toolUseBehavior: "stop_on_first_tool" }),
  );
  const stage = stageOf(backend, [requires("cup")]);
  expect((await stage.agent.session().prompt("go")).text).toBe("cup costs 12");
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
