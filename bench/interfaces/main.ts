/**
 * Measures the interfaces of chat pages and model clients: what their folds cost for each event, with the JSON that a stream has, and how
 * many frames per second reach a client over each of them, compared with kit's own event stream.
 */
import { setImmediate } from "node:timers/promises";
import { parseArgs } from "node:util";
import { A2aFold } from "../../src/interfaces/a2a/fold.ts";
import { AgUiFold } from "../../src/interfaces/ag-ui/fold.ts";
import { UiFold } from "../../src/interfaces/ai-sdk/fold.ts";
import { ChatFold } from "../../src/interfaces/openai/chat-fold.ts";
import { newResponse, ResponseFold } from "../../src/interfaces/openai/response-fold.ts";
import type { KitEvent } from "../../src/protocol/event.ts";
import { noUsage } from "../../src/protocol/read-records.ts";
import { serveService } from "../../src/server/testing/serve-service.ts";
import { createScriptedModel } from "../../src/testing/scripted-model.ts";
import { createTestService } from "../../src/testing/test-service.ts";

const { values } = parseArgs({
  options: { rounds: { type: "string", default: "5" }, deltas: { type: "string", default: "5000" } },
});
const rounds = Number(values.rounds);
const operationId = "op_01HZZZZZZZZZZZZZZZZZZZZZZZ";

/** An operation of 100 turns, each with 200 deltas and a call. */
function recordedEvents(): readonly KitEvent[] {
  const events: KitEvent[] = [];
  const add = (type: string, fields: object = {}): void => {
    const about = { timestamp: "2026-12-01T12:00:00.000Z", agent: "echo", instance_id: "default" };
    const event = { type, index: events.length + 1, ...about, session: "s", operation_id: operationId };
    events.push({ ...event, ...fields } as KitEvent);
  };
  add("operation_start");
  for (let turn = 0; turn < 100; turn += 1) {
    const turn_id = `turn_${turn}`;
    add("turn_request", { turn_id, attempt: 1, purpose: "agent" });
    for (let delta = 0; delta < 200; delta += 1) add("text_delta", { turn_id, text: `word ${delta} ` });
    add("turn", { turn_id, purpose: "agent", finish_reason: "tool-calls", model: "m", usage: noUsage });
    const call = { tool_call_id: `call_${turn}`, tool: "look" };
    add("tool_start", { turn_id, ...call, args: { path: `file ${turn}` } });
    add("tool_end", { turn_id, ...call, result: "done", is_error: false, duration_ms: 1 });
    add("turn_end", { turn_id, tool_calls: 1 });
  }
  add("operation", { is_error: false, duration_ms: 1 });
  return events;
}

const folds: Readonly<Record<string, () => { push(event: KitEvent): readonly object[] }>> = {
  "AI SDK": () => new UiFold(operationId),
  "AG-UI": () => new AgUiFold({ operationId, threadId: "t", runId: "r" }),
  "Chat Completions": () => {
    const fold = new ChatFold({ operationId, model: "echo", created: 1 });
    return { push: (event) => fold.push(event).map((delta) => fold.toChunk(delta)) };
  },
  Responses: () =>
    new ResponseFold({ operationId }, newResponse({ id: "resp_x", model: "echo", createdAt: 1 })),
  A2A: () => new A2aFold({ operationId, taskId: "t", contextId: "c" }),
};

function median(numbers: readonly number[]): number {
  return numbers.toSorted((left, right) => left - right)[Math.floor(numbers.length / 2)] ?? Number.NaN;
}

const events = recordedEvents();
console.log(`The folds, µs of one thread for each of ${events.length} events, with JSON (at most 3):`);
for (const [name, create] of Object.entries(folds)) {
  const times: number[] = [];
  for (let round = 0; round < rounds + 3; round += 1) {
    const fold = create();
    const since = process.threadCpuUsage();
    for (const event of events) for (const each of fold.push(event)) JSON.stringify(each);
    const { user, system } = process.threadCpuUsage(since);
    if (round >= 3) times.push((user + system) / events.length);
  }
  console.log(`  ${median(times) <= 3 ? "met   " : "MISSED"} ${name}: ${median(times).toFixed(2)}`);
}

const deltas = Number(values.deltas);
const script = createScriptedModel(
  () => ({ deltas: Array.from({ length: deltas }, (_, at) => `word ${at} `) }),
  { recordCalls: false },
);
// Each delta comes in a turn of the event loop of its own, as from a network: a reader that is not let read gets several in one event.
const model = {
  ...script,
  async doStream(call: Parameters<typeof script.doStream>[0]) {
    const { stream } = await script.doStream(call);
    const paced = new TransformStream({
      async transform(part, controller) {
        await setImmediate();
        controller.enqueue(part);
      },
    });
    return { stream: stream.pipeThrough(paced) };
  },
};
const served = await serveService({ openService: ({ root }) => createTestService({ root, model }) });
let count = 0;
const user = { role: "user", content: "go" };
const streams: Readonly<Record<string, () => readonly [path: string, body: object]>> = {
  "kit's own": () => [`/agents/echo/own${count}`, { message: "go" }],
  "AI SDK": () => [
    `/agents/echo/ui${count}/ui`,
    { id: "c", messages: [{ id: `m${count}`, role: "user", parts: [{ type: "text", text: "go" }] }] },
  ],
  "AG-UI": () => [
    `/agents/echo/agui${count}/agui`,
    { threadId: "t", runId: `r${count}`, messages: [{ ...user, id: `m${count}` }], tools: [], context: [] },
  ],
  "Chat Completions": () => ["/v1/chat/completions", { model: "echo", stream: true, messages: [user] }],
  Responses: () => ["/v1/responses", { model: "echo", stream: true, input: "go" }],
};
console.log(
  `Frames per second to one client, ${deltas} in an answer, the median of ${rounds} rounds (the AI SDK's: at least 0.8 of kit's own):`,
);
const speeds = new Map<string, number[]>();
/** The streams of which a frame had several deltas, because the reader fell behind. */
const joined = new Set<string>();
for (let round = 0; round < rounds + 1; round += 1)
  for (const [name, toRequest] of Object.entries(streams)) {
    count += 1;
    const [path, body] = toRequest();
    const since = performance.now();
    const text = await (await served.stream(path, { body })).text();
    const ms = performance.now() - since;
    // A response has the text at its end again.
    const read = text.match(/word \d+ /g)?.length ?? 0;
    if (read < deltas) throw new Error(`${name}: ${read} deltas came: ${text.slice(0, 500)}`);
    const frames = text.match(/^data: /gm)?.length ?? 0;
    if (frames < deltas) joined.add(name);
    if (round > 0) speeds.set(name, [...(speeds.get(name) ?? []), (frames * 1_000) / ms]);
  }
const own = median(speeds.get("kit's own") ?? []);
for (const [name, all] of speeds) {
  const share = median(all) / own;
  const verdict = name !== "AI SDK" ? "      " : share >= 0.8 ? "met   " : "MISSED";
  console.log(
    `  ${verdict} ${name}: ${Math.round(median(all)).toLocaleString("en")} (${share.toFixed(2)})${joined.has(name) ? ", some of several deltas" : ""}`,
  );
}
await served.close();
