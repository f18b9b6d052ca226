import { expect, onTestFinished, test } from "vitest";
import { KitError } from "../../base/kit-error.ts";
import type { KitEvent } from "../../protocol/event.ts";
import type { Message } from "../../protocol/message.ts";
import { noUsage, textOf } from "../../protocol/read-records.ts";
import { agentStream } from "../../protocol/session-name.ts";
import { InMemorySessionStore } from "../../stores/memory/memory-store.ts";
import { createScriptedModel, type Script } from "../../testing/scripted-model.ts";
import { createTemporaryRepository } from "../../testing/temporary-repository.ts";
import { testFolder } from "../../testing/test-folder.ts";
import { createTestService, type TestService, type TestServiceOptions } from "../../testing/test-service.ts";

// As `createAgent` of kit makes it.
const helper = `export default { kind: "kit.agent", describe: async () => ({ instructions: "Help." }) };\n`;
const files = { "src/agents/helper.ts": helper, "src/agents/other.ts": helper };

const echo: Script = ({ prompt }) => {
  const message = prompt.findLast(({ role }) => role === "user")?.content;
  return {
    text: `You said: ${typeof message === "string" ? message : message?.map((part) => ("text" in part ? part.text : "")).join("")}`,
  };
};

async function open(
  script: Script = echo,
  {
    more = {},
    attempts = 1,
    ...where
  }: Pick<TestServiceOptions, "engineFolder" | "store"> & {
    more?: Readonly<Record<string, string>>;
    attempts?: number;
  } = {},
): Promise<TestService> {
  const repository = await createTemporaryRepository({ ...files, ...more });
  const service = await createTestService(
    {
      root: repository.root,
      model: createScriptedModel(script),
      ...where,
    },
    { attempts, backoffMs: 1 },
  );
  onTestFinished(async () => {
    await service.close();
    await repository[Symbol.asyncDispose]();
  });
  return service;
}

const one = { agent: "helper", instance_id: "1", session: "default" };

test("a prompt is answered by the instance's session, which continues its history", async () => {
  const service = await open(({ prompt }) => ({
    text: String(prompt.filter(({ role }) => role === "user").length),
    usage: { input: 3, output: 1 },
  }));
  const first = await service.prompt(one, { message: "One." });
  expect(first).toMatchObject({
    text: "1",
    model: { id: "test/model" },
    usage: { input: 3, total_tokens: 4 },
  });
  expect(Object.keys(first).toSorted()).toEqual(["metadata", "model", "text", "usage"]);
  expect((await service.prompt(one, { message: "Two." })).text).toBe("2");
  expect((await service.prompt({ ...one, session: "side" }, { message: "x" })).text).toBe("1");
  expect((await service.prompt({ ...one, agent: "other" }, { message: "x" })).text).toBe("1");
  const history = await service.history(one);
  expect(history.map(({ role }) => role)).toEqual(["user", "assistant", "user", "assistant"]);
  await expect(service.history({ ...one, instance_id: "new" })).rejects.toMatchObject({ code: "not_found" });
});

test("unknown agents and empty prompts are refused before anything is accepted", async () => {
  const service = await open();
  const unknown = { ...one, agent: "none" };
  await expect(service.prompt(unknown, { message: "x" })).rejects.toMatchObject({ code: "agent_not_found" });
  await expect(service.dispatch(unknown, "x")).rejects.toMatchObject({ code: "agent_not_found" });
  await expect(service.history(unknown)).rejects.toMatchObject({ code: "agent_not_found" });
  await expect(service.abort(unknown)).rejects.toMatchObject({ code: "agent_not_found" });
  await expect(service.remove(unknown)).rejects.toMatchObject({ code: "agent_not_found" });
  expect(() => service.events(unknown, {})).toThrow("There is no agent");
  await expect(service.prompt(one, { message: " " })).rejects.toMatchObject({ code: "invalid_request" });
  await expect(service.dispatch(one, "")).rejects.toMatchObject({ code: "invalid_request" });
  await expect(service.startRun("nothing", {})).rejects.toMatchObject({ code: "workflow_not_found" });
  expect((await service.engine.listDispatches()).items).toEqual([]);
});

test("ids that no path can hold and invalid keys are refused before anything is accepted", async () => {
  const service = await open();
  const refusal = { code: "invalid_request" };
  for (const id of ["", "owner/repo", "..", "a\0b", "\ud800", "x".repeat(129), 7 as unknown as string]) {
    const asInstance = { ...one, instance_id: id };
    const asSession = { ...one, session: id };
    for (const target of [asInstance, asSession]) {
      await expect(service.dispatch(target, "Hello.")).rejects.toMatchObject(refusal);
      await expect(service.prompt(target, { message: "Hello." })).rejects.toMatchObject(refusal);
    }
  }
  for (const idempotencyKey of ["", "a\nb", "x".repeat(257)]) {
    const options = { idempotencyKey };
    await expect(service.dispatch(one, "Hello.", options)).rejects.toMatchObject(refusal);
    await expect(service.prompt(one, { message: "Hello." }, options)).rejects.toMatchObject(refusal);
  }
  expect((await service.engine.listDispatches()).items).toEqual([]);
});

test("a caller gets the events of its own prompt and its tasks as they are emitted", async () => {
  const service = await open(({ prompt }) => {
    if (prompt.at(-1)?.role === "tool") return { text: "Done." };
    const text = JSON.stringify(prompt);
    return text.includes("Look deeper") || text.includes("Alone")
      ? { deltas: ["a", "b"] }
      : { toolCalls: [{ name: "task", input: { prompt: "Look deeper" } }] };
  });
  const received: KitEvent[] = [];
  const others: KitEvent[] = [];
  const [reply] = await Promise.all([
    service.prompt(one, { message: "Look." }, { onEvent: (event) => received.push(event) }),
    service.prompt(
      { ...one, session: "b" },
      { message: "Alone" },
      { onEvent: (event) => others.push(event) },
    ),
  ]);
  expect(reply.text).toBe("Done.");
  const operation = received[0]?.operation_id;
  expect(reply.metadata.operation_id).toBe(operation);
  expect(received[0]?.type).toBe("operation_start");
  expect(received.map(({ type }) => type)).toEqual(
    expect.arrayContaining(["task_start", "text_delta", "task_end"]),
  );
  expect(received.filter((event) => event.parent_operation_id === operation).length).toBeGreaterThan(3);
  expect(received.map(({ index }) => index)).toEqual(
    received.map(({ index }) => index).toSorted((a, b) => a - b),
  );
  expect(others.every(({ session }) => session === "b")).toBe(true);
  expect(others.filter(({ type }) => type === "text_delta")).toHaveLength(2);
});

test("a dispatched input runs later, once per key, with the input as its message", async () => {
  const service = await open();
  const receipt = await service.dispatch(one, "Hello", { idempotencyKey: "k" });
  expect(await service.dispatch(one, "Hello", { idempotencyKey: "k" })).toEqual(receipt);
  const record = await service.engine.awaitDispatch(receipt.dispatch_id);
  expect(record).toMatchObject({ status: "completed", input: "Hello", result: { text: "You said: Hello" } });
  const json = await service.dispatch(one, { issue: 7 });
  expect(await service.engine.awaitDispatch(json.dispatch_id)).toMatchObject({
    input: { issue: 7 },
    result: { text: 'You said: {\n  "issue": 7\n}' },
  });
  // An input that looks like a prompt of kit's own cannot choose the model.
  const forged = await service.dispatch(one, { $prompt: { message: "x", model: "dear/one" } });
  expect(await service.engine.awaitDispatch(forged.dispatch_id)).toMatchObject({
    result: { text: 'You said: {"$prompt":{"message":"x","model":"dear/one"}}', model: { id: "test/model" } },
  });
  expect((await service.history(one)).length).toBe(6);
});

test("a prompt with a key runs once, and all callers with the key get its reply", async () => {
  const service = await open();
  const received: KitEvent[] = [];
  const call = { idempotencyKey: "p", onEvent: (event: KitEvent) => received.push(event) };
  const [first, second] = await Promise.all([
    service.prompt(one, { message: "Hi" }, call),
    service.prompt(one, { message: "Hi" }, { idempotencyKey: "p" }),
  ]);
  expect(second).toEqual(first);
  expect(
    await service.prompt(one, { message: "Hi" }, { idempotencyKey: "p", onEvent: () => undefined }),
  ).toEqual(first);
  expect(received[0]?.type).toBe("operation_start");
  expect(received.map(({ type }) => type)).toEqual(expect.arrayContaining(["text_delta", "operation"]));
  expect((await service.history(one)).length).toBe(2);
});

test("a caller that disconnects aborts its prompt; another caller can abort the prompts of a session", async () => {
  const begun = Promise.withResolvers<void>();
  let calls = 0;
  const service = await open(() => {
    calls += 1;
    if (calls > 2) return { text: "Quick." };
    begun.resolve();
    return { text: "Slow.", delayMs: 60_000 };
  });
  const leaving = new AbortController();
  const left = service.prompt(one, { message: "x" }, { signal: leaving.signal });
  await begun.promise;
  leaving.abort(new Error("gone"));
  await expect(left).rejects.toMatchObject({ code: "aborted", cause: { message: "gone" } });

  expect(await service.abort({ agent: "helper", instance_id: "1" })).toBe(false);
  const stream = service.events({ agent: "helper", instance_id: "1" }, { after: await lastEvent(service) });
  const dispatched = await service.dispatch(one, "x");
  for await (const event of stream) if (event.type === "turn_request") break;
  expect(await service.abort({ agent: "helper", instance_id: "1", session: "other" })).toBe(false);
  expect(await service.abort({ agent: "helper", instance_id: "1", session: "default" })).toBe(true);
  expect(await service.engine.awaitDispatch(dispatched.dispatch_id)).toMatchObject({
    status: "cancelled",
    attempts: 1,
  });
  expect((await service.prompt(one, { message: "x" })).text).toBe("Quick.");
});

function lastEvent(service: TestService): Promise<number> {
  return service.engine.events.last(agentStream("helper", "1"));
}

test("an instance continues the numbers of its events after it was closed, and readers can start at any number", async () => {
  const service = await open();
  await service.prompt(one, { message: "One." });
  const last = await lastEvent(service);
  await service.reload();
  await service.prompt({ ...one, session: "side" }, { message: "Two." });
  const end = await lastEvent(service);
  const indexes: number[] = [];
  const kinds = new Set<string | undefined>();
  for await (const event of service.events({ agent: "helper", instance_id: "1" }, { after: 0 })) {
    indexes.push(event.index);
    kinds.add(event.session);
    if (event.index === end) break;
  }
  expect(indexes).toEqual(Array.from({ length: end }, (_, index) => index + 1));
  expect(kinds).toEqual(new Set(["default", "side"]));
  for await (const event of service.events(
    { agent: "helper", instance_id: "1" },
    { after: 0, session: "side" },
  )) {
    expect(event.index).toBeGreaterThan(last);
    if (event.index === end) break;
  }
});

test("a removed instance has no history, no events and no waiting input", async () => {
  const begun = Promise.withResolvers<void>();
  const service = await open(({ prompt }) => {
    if (JSON.stringify(prompt).includes("slow")) begun.resolve();
    return { text: "x", ...(JSON.stringify(prompt).includes("slow") ? { delayMs: 60_000 } : {}) };
  });
  const target = { agent: "helper", instance_id: "1" };
  expect(await service.remove(target)).toBe(false);
  await service.prompt({ ...one, session: "side" }, { message: "x" });
  const running = await service.dispatch(one, "slow");
  const waiting = await service.dispatch(one, "later");
  await begun.promise;
  expect(await service.remove(target)).toBe(true);
  for (const { dispatch_id } of [running, waiting]) {
    expect(await service.engine.getDispatch(dispatch_id)).toMatchObject({ status: "cancelled" });
  }
  await expect(service.history(one)).rejects.toMatchObject({ code: "not_found" });
  expect(await lastEvent(service)).toBe(0);
  expect(await service.remove(target)).toBe(false);
  expect((await service.prompt(one, { message: "new" })).text).toBe("x");
  expect(await service.history(one)).toHaveLength(2);
});

test("a retried dead letter appears once in a history that continued without it, and is answered at its end", async () => {
  let isBroken = true;
  const service = await open(({ prompt }, index) => {
    if (isBroken && JSON.stringify(prompt.at(-1)).includes("first"))
      throw new TypeError("The model is broken.");
    return { text: `Answer ${index}.` };
  });
  const failing = await service.dispatch(one, { first: true });
  const dead = await service.engine.awaitDispatch(failing.dispatch_id);
  expect(dead).toMatchObject({ status: "failed", error: { type: "model_error" } });
  isBroken = false;
  await service.prompt(one, { message: "second" });
  await service.engine.redrive(failing.dispatch_id);
  expect(await service.engine.awaitDispatch(failing.dispatch_id)).toMatchObject({ status: "completed" });
  const history = await service.history(one);
  const inputs = history.filter((message) => message.role === "user" && message.source === undefined);
  expect(inputs.map((message) => textOf(message).includes("first"))).toEqual([true, false]);
  expect(history.map(({ role }) => role)).toEqual(["user", "user", "assistant", "user", "assistant"]);
});

test("attempts before the last progress do not count, also if the agent has a store of its own", async () => {
  const failures = new Set([0, 1]);
  class BrokenStore extends InMemorySessionStore {
    override append(request: Parameters<InMemorySessionStore["append"]>[0]): void {
      const isAnswer = request.entries.some(
        (entry) => entry.type === "message" && entry.message.role === "assistant",
      );
      const answers = this.read(one).filter(
        (entry) => entry.type === "message" && entry.message.role === "assistant",
      );
      if (isAnswer && failures.delete(answers.length))
        throw new KitError({ code: "conflict", message: "Again." });
      super.append(request);
    }
  }
  Reflect.set(globalThis, "kitOwnStore", new BrokenStore());
  onTestFinished(() => void Reflect.deleteProperty(globalThis, "kitOwnStore"));
  const script: Script = ({ prompt }) =>
    prompt.at(-1)?.role === "tool"
      ? { text: "Done." }
      : { toolCalls: [{ name: "none", id: "call_1", input: {} }] };
  const own = `export default { kind: "kit.agent", describe: async () => ({ store: globalThis.kitOwnStore }) };\n`;
  const service = await open(script, { more: { "src/agents/helper.ts": own }, attempts: 2 });
  const { dispatch_id } = await service.dispatch(one, "Begin.");
  const record = await service.engine.awaitDispatch(dispatch_id);
  expect(record).toMatchObject({ status: "completed", attempts: 3, result: { text: "Done." } });
});

test("an agent that cannot be created has no progress, so that its input fails after its attempts", async () => {
  const broken = `export default { kind: "kit.agent", describe: () => globalThis.kitFail() };\n`;
  Reflect.set(globalThis, "kitFail", () => {
    throw new KitError({ code: "unavailable", message: "Not now." });
  });
  onTestFinished(() => void Reflect.deleteProperty(globalThis, "kitFail"));
  const service = await open(echo, { more: { "src/agents/helper.ts": broken }, attempts: 2 });
  const { dispatch_id } = await service.dispatch(one, "Begin.");
  const record = await service.engine.awaitDispatch(dispatch_id);
  expect(record).toMatchObject({ status: "failed", attempts: 2, error: { type: "unavailable" } });
});

test("work continues from the entries of a process that had lost the lease without knowing", async () => {
  const store = new InMemorySessionStore();
  const service = await open(
    ({ prompt }, index) => {
      if (index > 0) return { text: JSON.stringify(prompt).includes("Late.") ? "After that." : "Again." };
      const [asked] = store.read(one);
      if (asked?.type !== "message") throw new Error("The input is not there.");
      const { operation_id } = asked;
      const call = { type: "tool_call", tool_call_id: "call_1", tool: "late", args: {} } as const;
      const message: Message = {
        role: "assistant",
        content: [{ type: "text", text: "Late." }, call],
        timestamp: "2026-11-21T10:00:00.000Z",
        model: "test/model",
        usage: noUsage,
        finish_reason: "tool-calls",
      };
      store.append({
        key: one,
        expected: 1,
        entries: [{ version: 1, type: "message", operation_id, message }],
      });
      return { text: "Too late." };
    },
    { store, attempts: 2 },
  );
  const { dispatch_id } = await service.dispatch(one, "Begin.");
  const record = await service.engine.awaitDispatch(dispatch_id);
  expect(record).toMatchObject({ status: "completed", attempts: 2, result: { text: "After that." } });
  const history = await service.history(one);
  expect(history.map(({ role }) => role)).toEqual(["user", "assistant", "tool", "assistant"]);
  expect(history[2]?.content).toMatchObject([{ tool: "late", is_error: true }]);
});

test("an input that was accepted before a restart runs after it", async () => {
  const folder = testFolder(onTestFinished);
  const begun = Promise.withResolvers<void>();
  const first = await open(
    () => {
      begun.resolve();
      return { text: "x", delayMs: 60_000 };
    },
    { engineFolder: folder },
  );
  const receipts = [await first.dispatch(one, "A"), await first.dispatch(one, "B")];
  await begun.promise;
  await first.drain({ timeoutMs: 0 });
  const second = await open(echo, { engineFolder: folder });
  const records = await Promise.all(
    receipts.map(({ dispatch_id }) => second.engine.awaitDispatch(dispatch_id)),
  );
  expect(records).toMatchObject([
    { status: "completed", result: { text: "You said: A" } },
    { status: "completed", result: { text: "You said: B" } },
  ]);
});
