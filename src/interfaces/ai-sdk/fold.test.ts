import type { LanguageModelV4CallOptions } from "@ai-sdk/provider";
import {
  parseJsonEventStream,
  readUIMessageStream,
  type UIMessage,
  type UIMessageChunk,
  uiMessageChunkSchema,
} from "ai";
import { afterAll, beforeAll, expect, test } from "vitest";
import { KitError } from "../../base/kit-error.ts";
import type { KitEvent } from "../../protocol/event.ts";
import type { UiChunk } from "../../protocol/ui.ts";
import { type ServedService, serveService } from "../../server/testing/serve-service.ts";
import { createScriptedModel, type ScriptedTurn } from "../../testing/scripted-model.ts";
import { createTestService } from "../../testing/test-service.ts";
import { UiFold } from "./fold.ts";
import { toUiMessage } from "./ui-message.ts";

/** A web page could say it to a tool. The AI SDK ends a stream at such keys. */
const hostile = '{"__proto__":{"a":1},"b":[{"constructor":{"prototype":{}}},{"constructor":{"at":2}}]}';
let served: ServedService;
/** Resolves once the events of the newest operation are read. */
let isRead = Promise.withResolvers<void>();
beforeAll(async () => {
  let calls = 0;
  const answer = async ({ prompt }: LanguageModelV4CallOptions): Promise<ScriptedTurn> => {
    const text = JSON.stringify(prompt.findLast(({ role }) => role === "user")?.content);
    const isAnswered = prompt.at(-1)?.role === "tool";
    calls += 1;
    const words = ["The ", "answer ", "is ", "said ", "word ", "by ", "word."];
    if (text.includes("slowly written")) {
      // A reader that comes later gets the whole arguments only.
      await isRead.promise;
      const written = { words: "one, two and three", at: [1, { two: 2 }] };
      return isAnswered
        ? { deltas: words }
        : { deltas: words, toolCalls: [1, 2].map(() => ({ name: "look", input: written, pieces: 7 })) };
    }
    if (text.includes("cite"))
      return {
        deltas: words,
        attachments: [
          { type: "source", sourceType: "url", id: "s1", url: "https://example.org/a", title: "A page" },
          { type: "source", sourceType: "url", id: "s2", url: "javascript:alert(1)" },
          { type: "source", sourceType: "document", id: "s3", mediaType: "text/plain", title: "Notes" },
          { type: "file", mediaType: "image/png", data: { type: "data", data: new Uint8Array([1, 2, 3]) } },
          {
            type: "file",
            mediaType: "image/png",
            data: { type: "url", url: new URL("https://example.org/b.png") },
          },
        ],
      };
    if (text.includes("think")) return { reasoning: "First this, then that.", deltas: words };
    if (text.includes("twice")) {
      const call = { id: "same", name: "look", input: { at: calls } };
      return prompt.filter(({ role }) => role === "tool").length < 2
        ? { deltas: ["I ", "look. "], toolCalls: [call] }
        : { deltas: words };
    }
    if (text.includes("child") && !text.includes("delegate"))
      return isAnswered ? { text: "The child paid." } : { toolCalls: [{ name: "pay", input: { cents: 3 } }] };
    if (text.includes("delegate"))
      return isAnswered ? { deltas: words } : { toolCalls: [{ name: "task", input: { prompt: "child" } }] };
    if (text.includes("hostile"))
      return isAnswered ? { deltas: words } : { toolCalls: [{ name: "look", input: { hostile: true } }] };
    if (text.includes("several"))
      return isAnswered
        ? { deltas: words }
        : {
            toolCalls: [1, 2]
              .map((cents) => ({ name: "pay", input: { cents } }))
              .concat({ name: "look", input: { cents: 0 } }),
          };
    if (text.includes("breaks") && calls % 2 === 1)
      return { deltas: words, error: new TypeError("fetch failed"), failAfter: 4 };
    if (text.includes("refused"))
      return { error: new KitError({ code: "context_overflow", message: "It is too long." }) };
    return { deltas: words, ...(text.includes("slow") ? { delayMs: 100 } : {}) };
  };
  served = await serveService({
    files: {
      "src/agents/all.ts": `export const triggers = { webhook: true };
const pay = { name: "pay", description: "Pays.", input: { type: "object" }, needsApproval: true, editableArguments: true, execute: (args) => JSON.stringify(args) };
const look = { name: "look", description: "Looks.", input: { type: "object" }, execute: (args, context) => { context.progress?.({ half: true }); return args.hostile ? ${JSON.stringify(hostile)} : "seen"; } };
export default { kind: "kit.agent", describe: async () => ({ tools: [pay, look] }) };
`,
    },
    openService: ({ root }) =>
      createTestService({ root, model: createScriptedModel(answer, { recordCalls: false }) }),
  });
});
afterAll(() => served.close());

/** Prompts the agent, decides each call that waits, and returns the events as they came, and as they are stored. */
async function record(input: string, decide: (at: number) => object = () => ({ approved: true })) {
  const target = { agent: "all", instance_id: "fold" };
  isRead = Promise.withResolvers();
  const { operation_id } = await served.service.dispatch({ ...target, session: "default" }, input);
  const read = async (onEvent?: (event: KitEvent) => Promise<void>): Promise<readonly KitEvent[]> => {
    const events: KitEvent[] = [];
    const { signal } = new AbortController();
    for await (const event of await served.service.followOperation({ ...target, operation_id }, { signal })) {
      events.push(event);
      await onEvent?.(event);
    }
    return events;
  };
  let decided = 0;
  const live = await read(async (event) => {
    isRead.resolve();
    if (event.type === "approval_request") {
      const decision = decide(decided++);
      const approval = { id: event.approval_id, ...decision };
      const parts = [{ type: "tool-pay", state: "approval-responded", approval }];
      const messages = [{ id: operation_id, role: "assistant", metadata: { kit_index: event.index }, parts }];
      if ("args" in decision)
        await served.send(`/agents/all/fold/approvals/${event.approval_id}`, { body: decision });
      else await (await served.stream("/agents/all/fold/ui", { body: { messages } })).body?.cancel();
    }
    if (event.type === "text_delta" && input === "slow, stopped")
      await served.service.abort({ ...target, operation_id });
  });
  await served.service.prompt({ ...target, session: "other" }, { message: "the next" });
  await served.service.engine.events.flush();
  return { operation_id, live, stored: await read() };
}

function chunksOf(operationId: string, events: readonly KitEvent[]): readonly UiChunk[] {
  const fold = new UiFold(operationId);
  return [fold.start(), ...events.flatMap((event) => fold.push(event))];
}

/** The message that the AI SDK builds. */
async function read(chunks: readonly UiChunk[]): Promise<UIMessage | undefined> {
  const stream = new ReadableStream<UIMessageChunk>({
    start(controller) {
      for (const chunk of chunks) controller.enqueue(chunk);
      // A step that has only begun is not shown until the next chunk.
      controller.enqueue({ type: "message-metadata", messageMetadata: {} });
      controller.close();
    },
  });
  let message: UIMessage | undefined;
  for await (const next of readUIMessageStream({ stream, onError: () => undefined })) message = next;
  return message && JSON.parse(JSON.stringify(message));
}

/** Returns the chunks that a page refuses. */
async function refusedOf(chunks: readonly UiChunk[]): Promise<readonly unknown[]> {
  const text = chunks.map((chunk) => `data: ${JSON.stringify(chunk)}\n\n`).join("");
  const refused: unknown[] = [];
  for await (const read of parseJsonEventStream({
    stream: new Blob([text]).stream(),
    schema: uiMessageChunkSchema,
  }))
    if (!read.success) refused.push(read);
  return refused;
}

interface Scenario {
  readonly input: string;
  readonly decide?: (at: number) => object;
  /** The states of the calls in the message. */
  readonly calls: readonly string[];
  /** The other parts, if they are looked at. */
  readonly parts?: readonly object[];
  /** The number of pieces in which arguments arrive. */
  readonly written?: number;
  /** Whether the operation rests at some event, until a person decides. */
  readonly rests?: boolean;
}

const scenarios: readonly Scenario[] = [
  { input: "think, then speak", calls: [] },
  {
    input: "cite sources, and draw",
    calls: [],
    parts: [
      { type: "text", text: "The answer is said word by word." },
      { type: "source-url", sourceId: "s1", url: "https://example.org/a", title: "A page" },
      { type: "source-document", sourceId: "s3", mediaType: "text/plain", title: "Notes" },
      { type: "file", mediaType: "image/png", url: "data:image/png;base64,AQID" },
      { type: "file", mediaType: "image/png", url: "https://example.org/b.png" },
    ],
  },
  {
    input: "look twice under the same id",
    calls: ["tool-look output-available", "tool-look output-available"],
  },
  {
    input: "several calls",
    decide: (at) =>
      at === 0 ? { approved: true, args: { cents: 9 } } : { approved: false, reason: "too much" },
    calls: ["tool-pay output-available", "tool-pay output-denied", "tool-look output-available"],
    rests: true,
  },
  {
    input: "delegate to a child whose call waits",
    calls: ["tool-task output-available", "tool-pay output-available"],
    rests: true,
  },
  { input: "look at a hostile page", calls: ["tool-look output-available"] },
  { input: "breaks off once", calls: [] },
  { input: "refused for good", calls: [] },
  {
    input: "arguments that are slowly written",
    calls: ["tool-look output-available", "tool-look output-available"],
    written: 14,
  },
  { input: "slow, stopped", calls: [] },
];

test.each(scenarios)(
  "live and stored events, cut anywhere, give the message of the AI SDK: $input",
  async (scenario) => {
    const { operation_id, live, stored } = await record(scenario.input, scenario.decide);
    const whole = chunksOf(operation_id, live);
    expect(await refusedOf(whole)).toEqual([]);
    const message = await read(whole);
    expect(await read(chunksOf(operation_id, stored))).toEqual(message);
    // Deltas that are cut in other places.
    const cut = live.flatMap((event): KitEvent[] =>
      event.type === "text_delta" || event.type === "reasoning_delta"
        ? [...event.text].map((text) => ({ ...event, text }))
        : [event],
    );
    expect(await read(chunksOf(operation_id, cut))).toEqual(message);
    for (let end = 1; end <= whole.length; end += 1) {
      const own = toUiMessage(operation_id, whole.slice(0, end));
      const theirs = await read(whole.slice(0, end));
      // Arguments that are still written are only in the stream.
      const parts = theirs?.parts.filter((part) => !("state" in part && part.state === "input-streaming"));
      expect(JSON.parse(JSON.stringify({ metadata: {}, ...own }))).toEqual({ ...theirs, parts });
    }
    const calls = message?.parts.flatMap((part) =>
      "toolCallId" in part ? [`${part.type} ${part.state}`] : [],
    );
    expect(calls).toEqual(scenario.calls);
    const written = whole.filter(({ type }) => type === "tool-input-delta");
    expect(written).toHaveLength(scenario.written ?? 0);
    const begun = whole.flatMap((chunk) => (chunk.type === "tool-input-start" ? [chunk] : []));
    expect(begun.every(({ providerExecuted }) => providerExecuted === true)).toBe(true);
    // A page that comes after the first piece waits for the whole arguments.
    const late = new UiFold(operation_id);
    const rest = live.filter((event) => event.type !== "tool_args_delta" || event.offset > 0);
    const pieces = rest
      .flatMap((event) => late.push(event))
      .filter(({ type }) => /^tool-input-[sd]/.test(type));
    expect(pieces).toEqual([]);
    expect(stored.some(({ type }) => type === "tool_args_delta")).toBe(false);
    if (scenario.parts !== undefined) expect(message?.parts.slice(1)).toMatchObject(scenario.parts);
    const fold = new UiFold(operation_id);
    const resting = live.filter((event) => {
      fold.push(event);
      return fold.work.awaited.length > 0;
    });
    expect(resting.length > 0).toBe(scenario.rests ?? false);
  },
);

const at = (index: number, type: string, fields: object = {}): KitEvent =>
  ({ index, type, operation_id: "op_1", turn_id: `turn_${index}`, ...fields }) as unknown as KitEvent;

test("calls of one answer have ids of their own, however often the provider repeats one", () => {
  const fold = new UiFold("op_1");
  const call = { tool_call_id: "same", tool: "look", args: {}, result: "", is_error: false };
  const chunks = [0, 1, 2].flatMap((turn) => [
    ...fold.push(at(2 * turn + 1, "tool_start", call)),
    ...fold.push(at(2 * turn + 2, "tool_end", call)),
  ]);
  const ids = chunks.flatMap((chunk) => (chunk.type === "tool-input-available" ? [chunk.toolCallId] : []));
  expect(ids).toEqual(["op_1-same", "op_1-same-2", "op_1-same-3"]);
});

test("a message that joins after a killed process is not taken back with the text before it", () => {
  const fold = new UiFold("op_1");
  const types = [
    at(1, "operation_start"),
    at(2, "turn_request", { purpose: "agent" }),
    at(3, "text_delta", { text: "Half", turn_id: "turn_2" }),
    at(4, "operation_start"),
    at(5, "joined", { message: "left", client_id: "m-left", joined_from: "op_2" }),
    at(6, "turn_request", { purpose: "agent" }),
  ].flatMap((event) => fold.push(event).map(({ type }) => type));
  expect(types).toContain("reset-step");
  expect(types.lastIndexOf("reset-step")).toBeLessThan(types.indexOf("data-joined"));
});
