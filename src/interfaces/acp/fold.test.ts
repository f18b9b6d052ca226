import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import type { SessionUpdate } from "@agentclientprotocol/sdk";
import type { LanguageModelV4CallOptions } from "@ai-sdk/provider";
import { Ajv2020 } from "ajv/dist/2020.js";
import { expect, test } from "vitest";
import type { KitEvent } from "../../protocol/event.ts";
import { serveForTests } from "../../server/testing/serve-for-tests.ts";
import { createScriptedModel, type ScriptedTurn } from "../../testing/scripted-model.ts";
import { createTestService } from "../../testing/test-service.ts";
import { AcpFold } from "./fold.ts";

const ajv = new Ajv2020({ strict: false, validateFormats: false });
const schemaFile = fileURLToPath(import.meta.resolve("@agentclientprotocol/sdk/schema/v1/schema.json"));
ajv.addSchema(JSON.parse(readFileSync(schemaFile, "utf8")), "acp");
const isUpdate = ajv.compile({ $ref: "acp#/$defs/SessionUpdate" });

const words = ["The ", "answer ", "is ", "here."];
let calls = 0;
let hasBroken = false;
const answer = ({ prompt }: LanguageModelV4CallOptions): ScriptedTurn => {
  const text = JSON.stringify(prompt.findLast(({ role }) => role === "user")?.content);
  const results = prompt.filter(({ role }) => role === "tool").length;
  calls += 1;
  if (text.includes("think")) return { reasoning: "First this.", deltas: words };
  if (text.includes("twice") && results < 2)
    return { deltas: ["I look. "], toolCalls: [{ id: "same", name: "look", input: { at: calls } }] };
  if (text.includes("child") && !text.includes("delegate") && results === 0)
    return { text: "Not for the person.", toolCalls: [{ name: "pay", input: { cents: 3 } }] };
  if (text.includes("delegate") && results === 0)
    return { toolCalls: [{ name: "task", input: { prompt: "child" } }] };
  if (text.includes("pays") && results === 0)
    return { toolCalls: [1, 2].map((cents) => ({ name: "pay", input: { cents } })) };
  if (text.includes("writes") && results === 0)
    return { toolCalls: [{ name: "write", input: { path: "a.md", content: "one" } }] };
  if (text.includes("writes") && results === 1)
    return { toolCalls: [{ name: "edit", input: { path: "a.md", old: "one", new: "two" } }] };
  if (text.includes("breaks") && !hasBroken) {
    hasBroken = true;
    return { deltas: words, error: new TypeError("fetch failed"), failAfter: 2 };
  }
  return { deltas: words, ...(text.includes("slow") ? { delayMs: 100 } : {}) };
};
const served = serveForTests({
  files: {
    "src/agents/all.ts": `export const triggers = { webhook: true };
const pay = { name: "pay", description: "Pays.", input: { type: "object" }, needsApproval: true, execute: (args) => JSON.stringify(args) };
const look = { name: "look", description: "Looks.", input: { type: "object" }, execute: (args, context) => { context.progress?.({ half: true }); return "seen"; } };
export default { kind: "kit.agent", describe: async () => ({ tools: [pay, look], allowWrite: true }) };
`,
  },
  openService: ({ root }) =>
    createTestService({ root, model: createScriptedModel(answer, { recordCalls: false }) }),
});

/** Prompts the agent in a session of its own, decides its calls in turn, and returns the events that the log has. */
async function record(instance_id: string, input: string): Promise<readonly KitEvent[]> {
  const target = { agent: "all", instance_id };
  const { service } = served;
  const { operation_id } = await service.dispatch({ ...target, session: "default" }, input);
  const events: KitEvent[] = [];
  const { signal } = new AbortController();
  let decided = 0;
  for await (const event of await service.followOperation({ ...target, operation_id }, { signal })) {
    events.push(event);
    if (event.type === "approval_request")
      await service.approvals.decide(event.approval_id, { approved: decided++ === 0 });
    if (event.type === "text_delta" && input.includes("stopped"))
      await service.abort({ ...target, operation_id });
  }
  return events;
}

function updatesOf(events: readonly KitEvent[]): readonly SessionUpdate[] {
  const fold = new AcpFold("/project");
  return [...events.flatMap((event) => fold.push(event, null)), ...fold.endOpen()];
}

/** The chunks of one message joined, as an editor shows them. */
function joined(updates: readonly SessionUpdate[]): readonly unknown[] {
  const all: { id?: string; text?: string; update?: SessionUpdate }[] = [];
  for (const update of updates) {
    if (!("content" in update) || !("messageId" in update) || update.content?.type !== "text") {
      all.push({ update });
      continue;
    }
    const id = `${update.sessionUpdate} ${update.messageId}`;
    const last = all.at(-1);
    if (last?.id === id) last.text += update.content.text;
    else all.push({ id, text: update.content.text });
  }
  return all;
}

const said = (updates: readonly SessionUpdate[]): string =>
  updates
    .map((update) =>
      update.sessionUpdate === "agent_message_chunk" && update.content.type === "text"
        ? update.content.text
        : "",
    )
    .join("");

test.each([
  ["think, then speak", "The answer is here.", []],
  ["look twice under the same id", "I look. I look. The answer is here.", ["completed", "completed"]],
  ["pays two", "The answer is here.", ["completed", "failed"]],
  ["delegate to a child whose call waits", "The answer is here.", ["completed", "completed"]],
  ["writes a file", "The answer is here.", ["completed", "completed"]],
  ["breaks off once", "The [The answer broke off, and begins again.]\n\nThe answer is here.", []],
  ["slow, stopped", undefined, []],
])(
  "recorded events are updates that the protocol knows, however their deltas are cut: %s",
  async (input, text, ends) => {
    const events = await record(input.replaceAll(/\W+/g, "-"), input);
    const updates = updatesOf(events);
    for (const update of updates)
      expect(isUpdate(update), JSON.stringify([update, isUpdate.errors])).toBe(true);
    if (text !== undefined) expect(said(updates)).toBe(text);
    const started = updates.flatMap((update) =>
      update.sessionUpdate === "tool_call" ? [update.toolCallId] : [],
    );
    expect(new Set(started).size).toBe(started.length);
    const states = new Map<string, unknown>();
    for (const update of updates)
      if (update.sessionUpdate === "tool_call_update") {
        expect(started).toContain(update.toolCallId);
        states.set(update.toolCallId, update.status);
      }
    expect(started.map((id) => states.get(id))).toEqual(ends);
    const cut = events.flatMap((event): KitEvent[] =>
      event.type === "text_delta" || event.type === "reasoning_delta"
        ? [...event.text].map((text) => ({ ...event, text }))
        : [event],
    );
    expect(joined(updatesOf(cut))).toEqual(joined(updates));
    // An editor can come late: a log that begins anywhere gives updates of calls that it has seen begin.
    for (let from = 1; from < events.length; from += 1)
      for (const update of updatesOf(events.slice(from))) expect(isUpdate(update)).toBe(true);

    const target = { agent: "all", instance_id: input.replaceAll(/\W+/g, "-"), session: "default" };
    const { entries } = await served.service.historyPage(target, { limit: 100 });
    const replayed = new AcpFold("/project").replay(entries);
    for (const update of replayed)
      expect(isUpdate(update), JSON.stringify([update, isUpdate.errors])).toBe(true);
    expect(replayed[0]).toMatchObject({ sessionUpdate: "user_message_chunk", content: { text: input } });
    if (text !== undefined && !text.includes("[")) expect(said(replayed)).toBe(text);
  },
);

test("a change of a file is a difference between whole texts, live, and of the changed part in a replay", async () => {
  const events = await record("differences", "writes a file");
  const fold = new AcpFold("/project");
  const before = [null, "one\nmore\n"];
  const updates = events.flatMap((event) =>
    fold.push(event, event.type === "tool_start" ? before.shift() : undefined),
  );
  const diffs = (all: readonly SessionUpdate[]) =>
    all.flatMap((update) =>
      update.sessionUpdate === "tool_call_update"
        ? (update.content ?? []).filter(({ type }) => type === "diff")
        : [],
    );
  const path = "/project/a.md";
  expect(diffs(updates)).toEqual([
    { type: "diff", path, oldText: null, newText: "one" },
    { type: "diff", path, oldText: "one\nmore\n", newText: "two\nmore\n" },
  ]);
  const target = { agent: "all", instance_id: "differences", session: "default" };
  const { entries } = await served.service.historyPage(target, { limit: 100 });
  expect(diffs(new AcpFold("/project").replay(entries))).toEqual([
    { type: "diff", path, newText: "one" },
    { type: "diff", path, oldText: "one", newText: "two" },
  ]);
});

test("the editor hears how full the context is, and what the session costs as long as all of it is known", async () => {
  const events = await record("usage", "delegate to a child");
  const priced = (total: number | null) =>
    events.map((event) =>
      event.type === "turn"
        ? {
            ...event,
            usage: { ...event.usage, input: 900, output: 100, cost: { ...event.usage.cost, total } },
          }
        : event,
    );
  const turns = events.filter(({ type }) => type === "turn");
  const own = turns.filter(({ parent_operation_id }) => parent_operation_id === undefined);
  expect([turns.length, own.length]).toEqual([4, 2]);
  const usages = (total: number | null, fold = new AcpFold("/project", () => 8_000)) =>
    priced(total)
      .flatMap((event) => fold.push(event, null))
      .filter(({ sessionUpdate }) => sessionUpdate === "usage_update");
  const usage = { sessionUpdate: "usage_update", used: 1_000, size: 8_000 };
  const all = usages(0.5);
  for (const update of all) expect(isUpdate(update)).toBe(true);
  expect(all).toMatchObject([usage, { ...usage, cost: { amount: 2, currency: "USD" } }]);
  expect(usages(null)).toEqual([usage, usage]);
  expect(usages(0.5, new AcpFold("/project"))).toEqual([]);
  // Without a replay, too.
  expect(usages(0.5, new AcpFold("/project", () => 8_000, true))).toEqual([usage, usage]);
});
