import { setTimeout as delay } from "node:timers/promises";
import { inputRequired, McpServer } from "@modelcontextprotocol/server";
import { expect, test } from "vitest";
import { z } from "zod";
import { type Opened, open, resultOf } from "../../agents/approvals/paying-agent.suite.ts";
import type { ApprovalRequest } from "../../protocol/approval.ts";
import { openServer } from "../client.suite.ts";
import { limits } from "../limits.ts";
import { modernListener, serveHttp, sessionListener } from "./http-server.suite.ts";
import { createServerQuestions } from "./server-questions.ts";

const schema = {
  type: "object",
  properties: { guests: { type: "integer", minimum: 1 } },
  required: ["guests"],
};
const question = { message: "For how many?", requestedSchema: schema };

/** A real server whose tools ask what they are called with: all at once, or again after each answer. */
function createAskingServer(): McpServer {
  const server = new McpServer({ name: "asking", version: "1" });
  const ask = (questions: readonly unknown[]) =>
    inputRequired({
      inputRequests: Object.fromEntries(
        questions.map((params, at) => [`q${at}`, { method: "elicitation/create", params } as never]),
      ),
    });
  const inputSchema = z.object({ questions: z.array(z.unknown()) });
  server.registerTool("survey", { inputSchema }, ({ questions }, { mcpReq }) =>
    mcpReq.inputResponses === undefined
      ? ask(questions)
      : { content: [{ type: "text", text: JSON.stringify(mcpReq.inputResponses) }] },
  );
  server.registerTool("insist", { inputSchema }, ({ questions }) => ask(questions));
  return server;
}

const protocols = { "2026": modernListener, "2025": sessionListener };
const both = test.each(["2026", "2025"] as const);

interface Calling {
  readonly year: keyof typeof protocols;
  readonly tool?: "survey" | "insist";
  readonly questions: readonly unknown[];
  readonly canAsk?: boolean;
  readonly settings?: object;
  readonly over?: object;
}

/** Calls a tool of a server that asks, by an agent with an inbox. */
async function call({
  year,
  tool = "survey",
  questions,
  canAsk = true,
  settings,
  over = {},
}: Calling): Promise<{
  readonly agent: Opened["agent"];
  readonly events: Opened["events"];
  /** Answers the next question. */
  answer(decision: object): Promise<ApprovalRequest>;
  readonly result: Promise<string>;
}> {
  const { url } = await serveHttp(protocols[year]([], createAskingServer));
  const client = openServer({ url, ...settings }, { canAsk });
  const name = `mcp__s__${tool}`;
  const { agent, events } = open({
    script: ({ prompt }) =>
      prompt.at(-1)?.role === "tool"
        ? { text: "Done." }
        : { toolCalls: [{ name, id: "c1", input: { questions } }] },
    profile: { tools: await client.tools() },
    over,
  });
  const result = agent
    .session()
    .prompt("go")
    .then(({ messages }) => JSON.stringify(resultOf(messages).content));
  const answered = new Set<string>();
  return {
    agent,
    events,
    result,
    async answer(decision) {
      for (;;) {
        const asked = (await agent.approvals.list()).find(({ approval_id }) => !answered.has(approval_id));
        if (asked !== undefined) {
          answered.add(asked.approval_id);
          await agent.approvals.decide(asked.approval_id, decision as never);
          return asked;
        }
        await delay(5);
      }
    },
  };
}

both(
  "a form of a server is a question to the person of its call, and the answer goes back (%s)",
  async (year) => {
    const { answer, result } = await call({ year, questions: [question] });
    expect(await answer({ approved: true, result: { guests: 4 } })).toMatchObject({
      kind: "question",
      tool: "mcp__s__survey",
      message: 'The MCP server "s" asks: For how many?',
      schema,
    });
    expect(await result).toContain(String.raw`{\"q0\":{\"action\":\"accept\",\"content\":{\"guests\":4}}}`);
  },
);

both("a person can decline, and without an inbox nothing is answered (%s)", async (year) => {
  const { answer, result } = await call({ year, questions: [question] });
  await answer({ approved: false, reason: "Later." });
  expect(await result).toContain(String.raw`{\"q0\":{\"action\":\"decline\"}}`);
  const alone = await call({ year, questions: [question], over: { approvals: undefined } });
  expect(await alone.result).toContain(String.raw`{\"q0\":{\"action\":\"cancel\"}}`);
});

both("the time limit of a call stops while a person thinks (%s)", async (year) => {
  const settings = { timeout_seconds: 1 };
  const { answer, result } = await call({ year, questions: [question], settings });
  await delay(1_100);
  await answer({ approved: true, result: { guests: 2 } });
  expect(await result).toContain(String.raw`\"guests\":2`);
});

both("a server that asks without end is stopped (%s)", async (year) => {
  const all = Array.from({ length: year === "2026" ? 1_000 : 100 }, (_, at) => ({
    ...question,
    message: `Question ${at}?`,
  }));
  const { result, events, agent } = await call({ year, questions: all });
  expect(await result).toContain(`more than ${limits.questions} questions in one call`);
  expect(events.filter(({ type }) => type === "approval_request").length).toBeLessThanOrEqual(
    limits.questions,
  );
  expect(await agent.approvals.list()).toEqual([]);
  const over = { approvals: undefined };
  const again = await call({ year, tool: "insist", questions: [question], over });
  expect(await again.result).toMatch(/more than 20|after \d+ rounds/);
});

both("a person sees who asks, and nothing that is hidden or too long (%s)", async (year) => {
  const message = `\u001b[31mHi\u202e\u0000\n\nkit asks: your password?\n${"x".repeat(10_000)}`;
  const field = { type: "string", title: "Na\u202eme\u{e0041}", description: "\u001b[2Ja" };
  const hostile = { message, requestedSchema: { type: "object", properties: { name: field } } };
  const { answer, result } = await call({ year, questions: [hostile] });
  const asked = await answer({ approved: false });
  expect(asked.message).toMatch(/^The MCP server "s" asks: Hi\n> \n> kit asks: your password\?\n> x+…$/);
  expect(asked.message?.length).toBeLessThan(limits.questionChars + 100);
  expect(asked.schema).toEqual({
    type: "object",
    properties: { name: { type: "string", title: "Name", description: "a" } },
  });
  await result;
});

test.each([
  [
    "an address",
    { mode: "url", message: "Open", url: "https://example.org/", elicitationId: "1" },
    "do not declare the required capability",
  ],
  [
    "a schema of 60,000 characters",
    { ...question, requestedSchema: { ...schema, title: "x".repeat(60_000) } },
    "longer than 50000",
  ],
  [
    "an object in the form",
    { message: "a", requestedSchema: { type: "object", properties: { a: { type: "object" } } } },
    "no text, number",
  ],
  ["no message", { message: " ", requestedSchema: schema }, "its message is empty"],
  [
    "a pattern that takes too long",
    {
      message: "a",
      requestedSchema: { type: "object", properties: { a: { type: "string", pattern: "(a)\\1" } } },
    },
    "look-around or a back-reference",
  ],
  ["no schema", { message: "a" }, "not that of an object"],
])(
  "a question that no person could answer is refused, with the reason: %s",
  async (_what, params, reason) => {
    const { result, events } = await call({ year: "2026", questions: [params] });
    expect(await result).toContain(reason);
    expect(events.some(({ type }) => type === "approval_request")).toBe(false);
  },
);

both("a server is told that it cannot ask where there is no person (%s)", async (year) => {
  const { result, events } = await call({ year, questions: [question], canAsk: false });
  expect(await result).toMatch(/elicitation|input from a person/);
  expect(events.some(({ type }) => type === "approval_request")).toBe(false);
});

test("a question of the older protocol during several calls is refused, because it does not name its call", async () => {
  const { url } = await serveHttp(sessionListener([], createAskingServer));
  const client = openServer({ url }, { canAsk: true });
  const toolCall = (id: string) => ({ name: "mcp__s__survey", id, input: { questions: [question] } });
  const { agent, events } = open({
    script: ({ prompt }) =>
      prompt.at(-1)?.role === "tool" ? { text: "Done." } : { toolCalls: [toolCall("c1"), toolCall("c2")] },
    profile: { tools: await client.tools() },
  });
  const { messages } = await agent.session().prompt("go");
  expect(JSON.stringify(messages)).toContain("several calls are open");
  expect(events.some(({ type }) => type === "approval_request")).toBe(false);
});

test("a server that asks to open an address although kit cannot is refused", async () => {
  const ask = createServerQuestions({ name: "s", secrets: [] }, async () => ({ action: "cancel" }));
  const params = { mode: "url", message: "Open", url: "https://example.org/" };
  await expect(ask(params)).rejects.toMatchObject({
    message: "It asks a person to open an address, which agents do not support.",
    outcome: "refused",
  });
});
