import { StreamResponse, Task } from "@a2a-js/sdk";
import type { LanguageModelV4CallOptions } from "@ai-sdk/provider";
import { expect, test } from "vitest";
import type { A2aMessage, A2aPart, A2aUpdate } from "../../protocol/a2a.ts";
import type { DispatchRecord } from "../../protocol/dispatch.ts";
import type { KitEvent } from "../../protocol/event.ts";
import { serveForTests } from "../../server/testing/serve-for-tests.ts";
import { createScriptedModel, type ScriptedTurn } from "../../testing/scripted-model.ts";
import { createTestService } from "../../testing/test-service.ts";
import { A2aFold } from "./fold.ts";
import { toA2aInput, toAnswers } from "./input.ts";
import { toTask, type WaitingCall } from "./task.ts";

let hasBroken = false;
const answer = ({ prompt }: LanguageModelV4CallOptions): ScriptedTurn => {
  const text = JSON.stringify(prompt.findLast(({ role }) => role === "user")?.content);
  const results = prompt.filter(({ role }) => role === "tool").length;
  if (text.includes("pays") && results === 0)
    return { text: "I pay. ", toolCalls: [1, 2].map((cents) => ({ name: "pay", input: { cents } })) };
  if (text.includes("delegates") && results === 0)
    return { toolCalls: [{ name: "task", input: { prompt: "child" } }] };
  if (text.includes("breaks") && !hasBroken) {
    hasBroken = true;
    return { deltas: ["The ", "wrong "], error: new TypeError("fetch failed"), failAfter: 2 };
  }
  if (text.includes("typed")) return { text: '{"answer":42}' };
  return { reasoning: "Hm.", deltas: ["The ", "answer."] };
};
const typed = `{ output: { type: "object", properties: { answer: { type: "integer" } }, required: ["answer"] } }`;
const served = serveForTests({
  files: {
    "src/agents/typed.ts": `export const triggers = { webhook: true };
export default { kind: "kit.agent", describe: async () => (${typed}) };
`,
  },
  openService: ({ root }) =>
    createTestService({ root, model: createScriptedModel(answer, { recordCalls: false }) }),
});

interface Recorded {
  readonly record: DispatchRecord;
  readonly events: readonly KitEvent[];
}

let count = 0;

/** Dispatches an input, approves its calls, and returns what the log has. */
async function run(agent: string, text: string): Promise<Recorded> {
  const target = { agent, instance_id: "log", session: `s${++count}` };
  const { dispatch_id, operation_id } = await served.service.dispatch(target, text);
  const events: KitEvent[] = [];
  const { signal } = new AbortController();
  for await (const event of await served.service.followOperation({ ...target, operation_id }, { signal })) {
    events.push(event);
    if (event.type === "approval_request")
      await served.service.approvals.decide(event.approval_id, { approved: true }, target);
  }
  const record = await served.service.engine.awaitDispatch(dispatch_id);
  if (record === undefined) throw new Error("There is no record.");
  return { record, events };
}

/** Folds a log from an event on, and checks each update by the SDK's own types. */
function fold(
  { record, events }: Recorded,
  after = 0,
): { readonly updates: A2aUpdate[]; readonly text: string } {
  const { dispatch_id: taskId, session: contextId } = record;
  const all = new A2aFold({ taskId, contextId, operationId: taskId.replace("dispatch", "op"), after });
  const updates = [
    ...events.flatMap((event) => all.push(event)),
    ...all.end(toTask(record, { message: "" })),
  ];
  for (const update of updates) {
    const json = StreamResponse.toJSON(StreamResponse.fromJSON(update));
    // Protobuf leaves out what is the default.
    const { append, lastChunk, ...rest } =
      "artifactUpdate" in update ? update.artifactUpdate : { append: 1, lastChunk: 1 };
    expect(json).toMatchObject("artifactUpdate" in update ? { artifactUpdate: rest } : update);
  }
  let text = "";
  for (const update of updates)
    if ("artifactUpdate" in update) {
      const { append, artifact } = update.artifactUpdate;
      const said = artifact.parts
        .map((part) => ("text" in part ? part.text : JSON.stringify(part.data)))
        .join("");
      text = append ? text + said : said;
    }
  return { updates, text };
}

const statesOf = (updates: readonly A2aUpdate[]): readonly string[] =>
  updates.flatMap((update) => ("statusUpdate" in update ? [update.statusUpdate.status.state] : []));

test.each([
  ["echo", "hello", "The answer."],
  ["careful", "pays", "The answer."],
  ["echo", "delegates", "The answer."],
  ["echo", "breaks", "The answer."],
  ["typed", "typed", '{"answer":42}'],
])("the artifact of %s for %s ends as the answer of the record", async (agent, text, answer) => {
  const recorded = await run(agent, text);
  const { updates, text: said } = fold(recorded);
  const [artifact] = toTask(recorded.record, { message: text }).artifacts ?? [];
  const [part] = artifact?.parts ?? [];
  expect([said, part && ("text" in part ? part.text : JSON.stringify(part.data))]).toEqual([answer, answer]);
  const states = statesOf(updates);
  expect([states[0], states.at(-1)]).toEqual(["TASK_STATE_WORKING", "TASK_STATE_COMPLETED"]);
  const task = toTask(recorded.record, { message: text });
  expect(Task.toJSON(Task.fromJSON(task))).toMatchObject(task);
});

test("a stream from any event on has the updates that follow, byte by byte", async () => {
  const recorded = await run("careful", "pays");
  const whole = fold(recorded).updates.map((update) => JSON.stringify(update));
  for (const { index } of recorded.events) {
    const rest = fold(recorded, index).updates.map((update) => JSON.stringify(update));
    expect(whole.slice(whole.length - rest.length)).toEqual(rest);
  }
});

const call = (approval_id: string, more: object = {}): WaitingCall => ({
  ...{ approval_id, agent: "a", instance_id: "i", session: "s", operation_id: "o", tool_call_id: "t" },
  ...{ tool: "pay", args: {}, requested_at: "2026-12-01T00:00:00.000Z", isSenders: true, ...more },
});
const message = (...parts: readonly A2aPart[]): A2aMessage => ({
  messageId: "m",
  role: "ROLE_USER",
  parts: [...parts],
});

test("only a clear yes approves, and each answer names its call", () => {
  const answer = (parts: readonly A2aPart[], waiting = [call("approval_1")]): unknown => {
    try {
      return Object.fromEntries(toAnswers(message(...parts), { waiting, decided: new Set(["approval_0"]) }));
    } catch (error) {
      return (error as { meta: { issues: { message: string }[] } }).meta.issues[0]?.message;
    }
  };
  const approve = { data: { approval_id: "approval_1", decision: "approve" } };
  const yes = { approval_1: { approved: true } };
  expect(answer([approve])).toEqual(yes);
  const asked = '{"approval_id":"approval_1","decision":"approve"}';
  for (const text of ["approve", "deny", "yes", ""]) expect(answer([{ text }])).toContain(asked);
  for (const data of [true, { decision: "approve" }, { approved: true }, ["approve"], null])
    expect(answer([{ data }])).toContain(asked);
  for (const more of [{}, { decision: true }, { decision: "Approve" }, { decision: "approve", result: 1 }])
    expect(answer([{ data: { approval_id: "approval_1", ...more } }])).toContain(asked);
  const deny = { data: { approval_id: "approval_2", decision: "deny", reason: "no" } };
  const two = [call("approval_1"), call("approval_2")];
  const no = { approved: false, reason: "no" };
  expect(answer([deny, approve], two)).toEqual({ ...yes, approval_2: no });
  expect(answer([deny], [call("approval_1")])).toContain("no call");
  expect(answer([{ data: { approval_id: "approval_0", decision: "deny" } }, approve])).toEqual(yes);
  expect(answer([approve, approve])).toContain("twice");
  expect(answer([{ url: "https://x.example/a.png", mediaType: "image/png" }])).toContain(asked);
  for (const kind of ["caller", "question"] as const) {
    const waiting = [call("c", { kind })];
    const of = (more: object): unknown => answer([{ data: { approval_id: "c", ...more } }], waiting);
    expect(of({ result: [1] })).toEqual({ c: { approved: true, result: [1] } });
    expect(of({ decision: "deny", reason: "no" })).toEqual({ c: no });
    for (const more of [{}, { decision: "approve" }, { decision: "deny", result: 1 }])
      expect(of(more)).toContain('{"approval_id":"c","result":"…"}');
  }
});

test("texts, data and files of a message are a prompt", () => {
  expect(
    toA2aInput(
      message(
        { text: "Read this." },
        { data: { order: 7 } },
        { raw: "AAAA", mediaType: "image/png" },
        { url: "https://x.example/a.pdf", mediaType: "application/pdf", filename: "a.pdf" },
      ),
    ),
  ).toEqual({
    message: 'Read this.\n\n{"order":7}',
    images: [{ data: "AAAA", media_type: "image/png" }],
    files: [{ url: "https://x.example/a.pdf", media_type: "application/pdf", filename: "a.pdf" }],
  });
  for (const [part, reason] of [
    [{ raw: "AAAA", mediaType: "application/zip" }, "CONTENT_TYPE_NOT_SUPPORTED"],
    [{ raw: "AAAA" }, "CONTENT_TYPE_NOT_SUPPORTED"],
    [{ text: "x", mediaType: "video/mp4" }, "CONTENT_TYPE_NOT_SUPPORTED"],
    [{ url: "http://x.example/a.png", mediaType: "image/png" }, undefined],
  ] as const) {
    const refused = expect.objectContaining({
      meta: expect.objectContaining(reason ? { reason } : { issues: expect.any(Array) }),
    });
    expect(() => toA2aInput(message({ text: "x" }, part))).toThrow(refused);
  }
});
