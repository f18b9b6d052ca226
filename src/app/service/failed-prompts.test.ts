import { expect, onTestFinished, test } from "vitest";
import { createModelResolver } from "../../models/create-model-resolver.ts";
import type { KitEvent } from "../../protocol/event.ts";
import { InMemorySessionStore } from "../../stores/memory/memory-store.ts";
import { type ProviderReply, startProviderServer } from "../../testing/provider-server/provider-server.ts";
import { createTemporaryRepository } from "../../testing/temporary-repository.ts";
import { createTestService, type TestService } from "../../testing/test-service.ts";

const agent = `export default { kind: "kit.agent", describe: async () => ({ instructions: "Answer." }) };\n`;
const target = { agent: "desk", instance_id: "1", session: "default" };

interface Setup {
  readonly attempts?: number;
  readonly store?: InMemorySessionStore;
  readonly engineFolder?: string;
}

interface Opened {
  readonly service: TestService;
  readonly events: KitEvent[];
  readonly asked: () => number;
  readonly log: () => Promise<readonly object[]>;
}

async function open(
  replies: readonly ProviderReply[],
  { attempts = 5, store = new InMemorySessionStore(), engineFolder }: Setup = {},
): Promise<Opened> {
  const provider = await startProviderServer();
  provider.script(replies);
  const resolve = createModelResolver({ env: {}, providers: provider.providers });
  const { model } = await resolve("local/m");
  const repository = await createTemporaryRepository({ "src/agents/desk.ts": agent });
  const service = await createTestService(
    { root: repository.root, model, store, ...(engineFolder === undefined ? {} : { engineFolder }) },
    { backoffMs: 1, attempts },
  );
  onTestFinished(async () => {
    await service.close();
    await provider.close();
    await repository[Symbol.asyncDispose]();
  });
  const events: KitEvent[] = [];
  service.app.onEvent((event) => void events.push(event));
  const log = async () => (await store.read(target)).filter(({ type }) => type === "note");
  return { service, events, asked: () => provider.requests.length, log };
}

/** The events that tell how operations go. */
function story(events: readonly KitEvent[]): readonly unknown[] {
  return events.flatMap((event): unknown[] => {
    switch (event.type) {
      case "operation_start":
        return [["start", event.attempt]];
      case "error":
        return [[event.error.type, event.will_retry, event.turn_id === undefined ? "operation" : "turn"]];
      case "operation":
        return [[event.is_error ? "failed" : "done"]];
      case "aborted":
      case "idle":
        return [[event.type]];
      default:
        return [];
    }
  });
}

const refused = {
  type: "model_error",
  message: "The model's provider answered with status 401.",
  cause: {
    name: "ProviderError",
    message: "Incorrect API key provided: [secret].",
    status: 401,
    code: "invalid_api_key",
  },
} as const;
const unauthorized: ProviderReply = {
  status: 401,
  body: JSON.stringify({
    error: {
      message: "Incorrect API key provided: sk-ab***yz.",
      type: "invalid_request_error",
      code: "invalid_api_key",
    },
  }),
};

async function dispatch(service: TestService) {
  const { dispatch_id } = await service.dispatch(target, "Hello");
  return await service.engine.awaitDispatch(dispatch_id);
}

test("a dispatched prompt whose key the provider refuses ends once, and record, events and log have the provider's words", async () => {
  const { service, events, asked, log } = await open([unauthorized]);
  expect(await dispatch(service)).toMatchObject({ status: "failed", attempts: 1, error: refused });
  expect(asked()).toBe(1);
  expect(story(events)).toEqual([["start", undefined], ["model_error", false, "turn"], ["failed"], ["idle"]]);
  expect(events.find(({ type }) => type === "error")).toMatchObject({ error: refused });
  expect(await log()).toEqual([
    {
      version: 1,
      type: "note",
      name: "operation_end",
      operation_id: events[0]?.operation_id,
      timestamp: expect.any(String),
      value: {
        status: "failed",
        error: refused,
        duration_ms: expect.any(Number),
        dispatch_id: expect.stringMatching(/^dispatch_/),
      },
    },
  ]);
});

test.each([400, 403, 404, 409, 422])(
  "a status %d ends a dispatched prompt at the first attempt",
  async (status) => {
    const { service, events, asked } = await open([{ status }, { text: "late" }]);
    expect(await dispatch(service)).toMatchObject({ status: "failed", attempts: 1 });
    expect([asked(), events.filter(({ type }) => type === "operation").length]).toEqual([1, 1]);
  },
);

test("an error inside a stream with a permanent code ends a dispatched prompt at the first attempt", async () => {
  const error = { message: "Unknown model.", type: "invalid_request_error", code: "model_not_found" };
  const { service, asked } = await open([{ garbage: `data: ${JSON.stringify({ error })}\n\n` }]);
  expect(await dispatch(service)).toMatchObject({
    attempts: 1,
    error: {
      message: "The model's provider reported an error.",
      cause: { message: "Unknown model.", code: "model_not_found" },
    },
  });
  expect(asked()).toBe(1);
});

test("while the engine tries again the operation goes on: its errors say so, and it ends once, with the answer", async () => {
  const { service, events, asked, log } = await open([...Array(5).fill({ status: 500 }), { text: "Well." }]);
  expect(await dispatch(service)).toMatchObject({ status: "completed", attempts: 3 });
  expect(asked()).toBe(6);
  expect(story(events)).toEqual([
    ["start", undefined],
    ["model_error", true, "turn"],
    ["model_error", true, "turn"],
    ["start", 2],
    ["model_error", true, "turn"],
    ["model_error", true, "turn"],
    ["start", 3],
    ["model_error", true, "turn"],
    ["done"],
    ["idle"],
  ]);
  expect(await log()).toEqual([]);
  expect(new Set(events.map(({ operation_id }) => operation_id)).size).toBe(1);
});

test("a prompt that fails at the last attempt of its engine says how many there were", async () => {
  const { service, events, log } = await open([], { attempts: 2 });
  expect(await dispatch(service)).toMatchObject({ status: "failed", attempts: 2 });
  expect(story(events).slice(-3)).toEqual([["model_error", false, "turn"], ["failed"], ["idle"]]);
  expect(await log()).toMatchObject([{ value: { status: "failed", attempts: 2 } }]);
});

test.each([1, 3])(
  "a prompt that asks for %d attempts at its model fails after them for good",
  async (attempts) => {
    const { service, events, asked } = await open(Array(9).fill({ status: 500 }));
    const { dispatch_id } = await service.dispatch(target, "Hello", { attempts });
    expect(await service.engine.awaitDispatch(dispatch_id)).toMatchObject({ status: "failed", attempts: 1 });
    expect(asked()).toBe(attempts);
    const retried = Array(attempts - 1).fill(["model_error", true, "turn"]);
    const failed = [["model_error", false, "turn"], ["failed"], ["idle"]];
    expect(story(events)).toEqual([["start", undefined], ...retried, ...failed]);
    await expect(service.prompt(target, { message: "Again", attempts })).rejects.toThrow("status 500");
    expect(asked()).toBe(2 * attempts);
  },
);

test("a prompt can ask for more attempts at its model than usual", async () => {
  const { service, asked } = await open([...Array(3).fill({ status: 500 }), { text: "Well." }]);
  expect((await service.prompt(target, { message: "Hello", attempts: 4 })).text).toBe("Well.");
  expect(asked()).toBe(4);
  for (const attempts of [0, 21, 1.5, Number.NaN])
    for (const refusal of [
      service.prompt(target, { message: "Hello", attempts }),
      service.dispatch(target, "Hello", { attempts }),
    ])
      await expect(refusal).rejects.toMatchObject({
        code: "invalid_request",
        message: "`attempts` must be a whole number from 1 to 20.",
      });
});

test("a failed prompt is not part of what the model gets next", async () => {
  const { service, log } = await open([unauthorized, { text: "Well." }]);
  await expect(service.prompt(target, { message: "Hello" })).rejects.toMatchObject({
    code: "model_error",
    hint: "Incorrect API key provided: [secret].",
    meta: { provider_status: 401, provider_code: "invalid_api_key" },
  });
  expect((await service.prompt(target, { message: "Again" })).text).toBe("Well.");
  expect(await log()).toHaveLength(1);
  expect(JSON.stringify(await service.history(target))).not.toContain("Incorrect");
});

test("pages of the history have the ends of failed operations among the messages, until a retry continues them", async () => {
  const { service } = await open([unauthorized, { text: "Well." }, unauthorized, { text: "At last." }]);
  await expect(service.prompt(target, { message: "First" })).rejects.toThrow();
  await service.prompt(target, { message: "Second" });
  const failed = await dispatch(service);
  const { dispatch_id } = failed ?? { dispatch_id: "" };
  const newest = await service.historyPage(target, { limit: 2 });
  expect(newest.entries.map(({ position }) => position)).toEqual([4, 5]);
  expect(newest.ends).toMatchObject([{ position: 6, status: "failed", error: refused, dispatch_id }]);
  const oldest = await service.historyPage(target, { limit: 9, before: newest.next_before });
  expect(oldest.entries.map(({ position }) => position)).toEqual([1, 3]);
  expect(oldest.ends).toMatchObject([{ position: 2, status: "failed", error: refused }]);
  await service.engine.redrive(dispatch_id);
  expect(await service.engine.awaitDispatch(dispatch_id)).toMatchObject({ status: "completed" });
  const page = await service.historyPage(target, { limit: 9 });
  expect(page.ends?.map(({ position }) => position)).toEqual([2]);
  expect(page.entries.at(-1)).toMatchObject({ position: 7, message: { role: "assistant" } });
});

test("an aborted operation leaves its end in the log, also before its model has answered", async () => {
  const { service, events, log } = await open([{ answer: { text: "Hello there" }, silentAfter: 2 }]);
  const prompt = service.prompt(target, { message: "Hello" });
  const rejected = expect(prompt).rejects.toMatchObject({ code: "aborted" });
  await expect.poll(() => events.some(({ type }) => type === "text_delta")).toBe(true);
  await service.abort(target);
  await rejected;
  expect(await log()).toMatchObject([{ name: "operation_end", value: { status: "aborted" } }]);
  expect(story(events)).toEqual([["start", undefined], ["aborted"], ["failed"], ["idle"]]);
});

test("a shutdown ends no dispatched operation: the next process resumes it, and then it ends once", async () => {
  const folder = await createTemporaryRepository({});
  onTestFinished(() => folder[Symbol.asyncDispose]());
  const engineFolder = folder.root;
  const store = new InMemorySessionStore();
  const first = await open([{ answer: { text: "Hello there" }, silentAfter: 2 }], { engineFolder, store });
  const { dispatch_id } = await first.service.dispatch(target, "Hello");
  await expect.poll(() => first.events.some(({ type }) => type === "text_delta")).toBe(true);
  await first.service.close();
  const next = await open([{ text: "Well." }], { engineFolder, store });
  expect(await next.service.engine.awaitDispatch(dispatch_id)).toMatchObject({ status: "completed" });
  expect(story(first.events)).toEqual([["start", undefined]]);
  expect(story(next.events)).toEqual([["start", undefined], ["done"], ["idle"]]);
  expect(await next.log()).toEqual([]);
});

test("the list of operations says how each went: completed, failed with its error and attempts, aborted, retrying", async () => {
  const { service, events } = await open([
    { text: "Well." },
    unauthorized,
    { answer: { text: "Hello there" }, silentAfter: 2 },
    ...Array<ProviderReply>(4).fill({ status: 500 }),
    { status: 500, headers: { "retry-after": "60" } },
  ]);
  await service.prompt(target, { message: "One" });
  await dispatch(service);
  const aborted = service.prompt(target, { message: "Three" }).catch((error: unknown) => error);
  const begun = () => events.some((event) => event.type === "text_delta" && event.text.startsWith("Hello"));
  await expect.poll(begun).toBe(true);
  await service.abort(target);
  await aborted;
  const { dispatch_id } = await service.dispatch(target, "Four");
  const statuses = async () => (await service.operations(target)).operations.map(({ status }) => status);
  const newest = async () => (await service.operations(target)).operations[0];
  await expect.poll(newest).toMatchObject({ status: "retrying", attempts: 3 });
  expect(await statuses()).toEqual(["retrying", "aborted", "failed", "completed"]);
  const [retrying, , failed, completed] = (await service.operations(target)).operations;
  expect(failed).toMatchObject({ error: refused, is_error: true });
  expect(completed?.error).toBeUndefined();
  expect(retrying).toMatchObject({ dispatch_id, error: { type: "model_error" } });
  await service.engine.cancelDispatch(dispatch_id);
  expect((await statuses())[0]).toBe("aborted");
});

test("the stack of an error in a prompt leads from the operation over the session and the engine to the caller", async () => {
  const { service } = await open([]);
  const limit = Error.stackTraceLimit;
  onTestFinished(() => {
    Error.stackTraceLimit = limit;
  });
  Error.stackTraceLimit = 100;
  async function callerOfPrompt(): Promise<unknown> {
    return await service.prompt(target, { message: "Hello", role: "unknown" });
  }
  const error = await callerOfPrompt().catch((reason: unknown) => reason);
  const stack = error instanceof Error ? (error.stack ?? "") : "";
  const positions = [
    "run-operation.ts",
    "session-work.ts",
    "attached-calls.ts",
    "prompts.ts",
    "callerOfPrompt",
  ].map((place) => stack.indexOf(place));
  expect(positions, stack).toEqual(positions.toSorted((one, other) => one - other));
  expect(positions, stack).not.toContain(-1);
});
