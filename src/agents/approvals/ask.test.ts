import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { afterAll, expect, test } from "vitest";
import { z } from "zod";
import { testFolder } from "../../testing/test-folder.ts";
import type { PromptResult } from "../operations/options.ts";
import { createSecretMask } from "../secrets.ts";
import { type Doom, openDoomed } from "../session/crash.suite.ts";
import { createApprovals } from "./approvals.ts";
import { type Opened, open, type Place, resultOf } from "./paying-agent.suite.ts";

const folder = testFolder(afterAll);

const guests = z.object({ guests: z.int().min(1) });

/** Opens an agent whose tool asks for a number of guests. */
function openAsking(place: Place & { readonly timeoutMs?: number } = {}): Opened {
  const { ran = [], timeoutMs } = place;
  return open({
    ...place,
    ran,
    tool: {
      needsApproval: false,
      async execute(_input, { ask }) {
        ran.push("asked");
        const answer = await ask({ message: "For how many?", schema: guests, timeoutMs });
        if (answer.action === "accept") ran.push(`acted for ${answer.value.guests}`);
        return answer;
      },
      ...place.tool,
    },
  });
}

async function textOf(answer: Promise<PromptResult>): Promise<string> {
  return JSON.stringify(resultOf((await answer).messages).content);
}

test("a question waits as a call of its kind, and the answer that its schema allows goes to the tool", async () => {
  const { agent, events, ran, waiting } = openAsking();
  const { answer, approval_id } = await waiting();
  expect(await agent.approvals.list()).toMatchObject([
    {
      approval_id: expect.stringMatching(/^question_/),
      kind: "question",
      tool: "pay",
      args: { amount: 5 },
      message: "For how many?",
      schema: { type: "object", properties: { guests: { type: "integer", minimum: 1 } } },
    },
  ]);
  const refused = { code: "invalid_request" };
  await expect(agent.approvals.decide(approval_id, { approved: true })).rejects.toMatchObject(refused);
  await agent.approvals.decide(approval_id, { approved: true, result: { guests: 4 }, by: "ada" });
  expect(await textOf(answer)).toContain(String.raw`\"action\":\"accept\",\"value\":{\"guests\":4}`);
  expect(ran).toEqual(["asked", "acted for 4"]);
  const types = ["tool_start", "approval_request", "approval", "tool_end"];
  expect(events.map(({ type }) => type).filter((type) => types.includes(type))).toEqual(types);
  expect(events.find(({ type }) => type === "approval_request")).toMatchObject({
    kind: "question",
    message: "For how many?",
    schema: { type: "object" },
  });
  expect(JSON.stringify(events.find(({ type }) => type === "approval"))).not.toContain("guests");
});

test("a person who declines, a time limit and a missing inbox are three answers without a value", async () => {
  const declining = openAsking();
  const { answer: declined } = await declining.decided({ approved: false, reason: "Later." });
  expect(await textOf(declined)).toContain(String.raw`{\"action\":\"decline\",\"reason\":\"Later.\"}`);
  const late = openAsking({ timeoutMs: 5 }).agent.session().prompt("pay");
  expect(await textOf(late)).toContain(
    String.raw`{\"action\":\"cancel\",\"reason\":\"It was not answered in time.\"}`,
  );
  const over: object = { approvals: undefined };
  const alone = openAsking({ over }).agent.session().prompt("pay");
  expect(await textOf(alone)).toContain(String.raw`\"action\":\"cancel\"`);
});

test("an answer that only the tool's own schema refuses is asked for again, with the reason", async () => {
  const even = guests.refine(({ guests }) => guests % 2 === 0, "must be even");
  const { agent, asked } = openAsking({
    tool: { execute: async (_input, { ask }) => await ask({ message: "For how many?", schema: even }) },
  });
  const first = asked();
  const answer = agent.session().prompt("pay");
  const again = first.then(() => asked());
  await agent.approvals.decide((await first).approval_id, { approved: true, result: { guests: 3 } });
  const { approval_id, message } = await again;
  expect(message).toBe("For how many?\n\nAn earlier answer was refused: must be even.");
  await agent.approvals.decide(approval_id, { approved: true, result: { guests: 2 } });
  expect(await textOf(answer)).toContain(String.raw`{\"guests\":2}`);
});

test("the time limit of a tool stops while a person is asked, and runs on afterwards", async () => {
  const { agent, ran, waiting } = openAsking({
    tool: {
      timeoutMs: 60,
      async execute(_input, { ask }) {
        await ask({ message: "Sure?", schema: { type: "boolean" } });
        ran.push("answered");
        await delay(10_000);
        return "late";
      },
    },
  });
  const { answer, approval_id } = await waiting();
  await delay(120);
  await agent.approvals.decide(approval_id, { approved: true, result: true });
  expect(await textOf(answer)).toContain("did not finish within 0.06 seconds");
  expect(ran).toEqual(["answered"]);
});

test("a question that its tool withdraws, or leaves alone, waits no longer", async () => {
  const leave = new AbortController();
  const isAsked = Promise.withResolvers<void>();
  const { agent, asked, events } = openAsking({
    tool: {
      async execute(_input, { ask }) {
        void ask({ message: "Left alone?", schema: { type: "boolean" } });
        await isAsked.promise;
        return "gone";
      },
    },
  });
  void asked().then(() => isAsked.resolve());
  expect(await textOf(agent.session().prompt("pay"))).toContain("gone");
  expect(await agent.approvals.list()).toEqual([]);
  await expect.poll(() => events.some(({ type }) => type === "approval")).toBe(true);
  expect(events.findLast(({ type }) => type === "approval")).toMatchObject({
    approved: false,
    reason: "The question was withdrawn.",
  });
  const withdrawing = openAsking({
    tool: {
      execute: async (_input, { ask }) =>
        await ask({ message: "Sure?", schema: { type: "boolean" }, signal: leave.signal }),
    },
  });
  const request = withdrawing.asked();
  const answer = withdrawing.agent.session().prompt("pay");
  await request;
  leave.abort();
  expect(await textOf(answer)).toContain(String.raw`\"action\":\"cancel\"`);
  expect(await withdrawing.agent.approvals.list()).toEqual([]);
});

test("files that a person changes while a tool asks are not the work of the tool", async () => {
  const spans: string[] = [];
  const sources = {
    begin: () => {
      spans.push("begin");
      return () => void spans.push("end");
    },
  };
  const over: object = { sources };
  const { agent, waiting } = openAsking({ over });
  const { answer, approval_id } = await waiting();
  expect(spans).toEqual(["begin", "end"]);
  await agent.approvals.decide(approval_id, { approved: true, result: { guests: 1 } });
  await answer;
  expect(spans).toEqual(["begin", "end", "begin", "end"]);
});

test("questions of one call are asked one after the other, the same one twice", async () => {
  const { agent, asked } = openAsking({
    tool: {
      async execute(_input, { ask }) {
        const one = { message: "Which?", schema: { type: "string" } };
        return JSON.stringify(await Promise.all([ask<string>(one), ask<string>(one)]));
      },
    },
  });
  const first = asked();
  const answer = agent.session().prompt("pay");
  const second = first.then(() => asked());
  const { approval_id } = await first;
  expect(await agent.approvals.list()).toHaveLength(1);
  await agent.approvals.decide(approval_id, { approved: true, result: "a" });
  await agent.approvals.decide((await second).approval_id, { approved: true, result: "b" });
  expect(await textOf(answer)).toMatch(/a.*b/);
});

test.each([
  ["without a message", { message: " ", schema: {} }, "`message` must be a text."],
  ["with a message that no person reads", { message: "x".repeat(10_001), schema: {} }, "10,000 characters"],
  ["without a schema", { message: "Sure?", schema: undefined as never }, "`schema` must be a schema"],
  ["with an invalid schema", { message: "Sure?", schema: { type: "bool" } }, "not a valid JSON Schema"],
])("a question %s is an error of the tool", async (_how, question, text) => {
  const { agent } = openAsking({ tool: { execute: async (_input, { ask }) => await ask(question) } });
  expect(await textOf(agent.session().prompt("pay"))).toContain(text);
});

const operationId = "op_pay";

function openOn(file: string, doom: Doom, { ran, tool = {} }: Place & { readonly ran: string[] }) {
  const doomed = openDoomed(join(folder, file), doom);
  const over = { store: doomed.store, approvals: createApprovals() };
  const opened = openAsking({ over, ran, tool, operationId });
  return { ...opened, doomed, ask: () => opened.agent.session().prompt("pay", { operationId }) };
}

// Appends: 1 the prompt, 2 the call, 3 the request, 4 the decision, 5 the result, 6 the answer.
test("a tool whose process died while it asked is called again, and asks under the same id", async () => {
  const ran: string[] = [];
  const first = openOn("waiting.db", { at: 4, when: "before" }, { ran });
  const { approval_id } = await first.waiting();
  await first.doomed.store.close();
  const second = openOn("waiting.db", { at: 0, when: "after" }, { ran });
  const { answer, approval_id: again } = await second.waiting();
  expect(again).toBe(approval_id);
  await second.agent.approvals.decide(approval_id, { approved: true, result: { guests: 2 } });
  expect((await answer).text).toBe("Done.");
  expect(ran).toEqual(["asked", "asked", "acted for 2"]);
});

test.each([
  [false, "outcome is unknown", ["asked"]],
  [true, "guests", ["asked", "asked", "acted for 2"]],
])(
  "once its question was answered, a tool is called again only if it is idempotent: %s",
  async (...expected) => {
    const [idempotent, text, all] = expected;
    const place = { ran: [] as string[], tool: { idempotent } };
    const first = openOn(`answered-${idempotent}.db`, { at: 4, when: "after" }, place);
    await first.decided({ approved: true, result: { guests: 2 } });
    await first.doomed.end;
    const second = openOn(`answered-${idempotent}.db`, { at: 0, when: "after" }, place);
    expect(await textOf(second.ask())).toContain(text);
    expect(second.events.map(({ type }) => type)).not.toContain("approval_request");
    expect(place.ran).toEqual(all);
  },
);

test("after a crash, a question that its tool no longer asks is withdrawn before the new one, and asked anew later", async () => {
  const ran: string[] = [];
  const tool: Place["tool"] = {
    execute: async (_input, { ask }) => {
      ran.push("asked");
      const message = ran.length % 2 === 1 ? "Odd?" : "Even?";
      return (await ask({ message, schema: { type: "boolean" } })).action;
    },
  };
  const ids: string[] = [];
  for (let attempt = 0; attempt < 2; attempt += 1) {
    const crashing = openOn("other.db", { at: attempt === 0 ? 4 : 3, when: "before" }, { ran, tool });
    const asked = crashing.asked();
    void crashing.ask();
    ids.push((await asked).approval_id);
    await crashing.doomed.store.close();
  }
  const last = openOn("other.db", { at: 0, when: "after" }, { ran, tool });
  const { answer, approval_id, message } = await last.waiting();
  expect(message).toBe("Odd?");
  expect(new Set([...ids, approval_id]).size).toBe(3);
  expect(await last.agent.approvals.list()).toHaveLength(1);
  const ended = last.events.filter(({ type }) => type === "approval");
  expect(ended).toMatchObject([{ approval_id: ids[1], reason: "The question was withdrawn." }]);
  await last.agent.approvals.decide(approval_id, { approved: true, result: true });
  expect(await textOf(answer)).toContain("accept");
});

test("a secret in the schema of a question is masked where it is listed", async () => {
  const secret = "sk-canary-0123456789";
  const over: object = { mask: createSecretMask([secret]) };
  const schema = { description: `Not ${secret}.`, enum: ["a", secret] };
  const { agent, waiting } = openAsking({
    over,
    tool: { execute: async (_input, { ask }) => (await ask({ message: "Which?", schema })).action },
  });
  const { answer, approval_id } = await waiting();
  expect(await agent.approvals.list()).toMatchObject([
    { schema: { description: "Not [secret].", enum: ["a", "[secret]"] } },
  ]);
  await agent.approvals.decide(approval_id, { approved: true, result: "a" });
  expect(await textOf(answer)).toContain("accept");
});
