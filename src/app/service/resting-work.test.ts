import { setTimeout as delay } from "node:timers/promises";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { expect, onTestFinished, test } from "vitest";
import type { KitEvent } from "../../protocol/event.ts";
import { InMemorySessionStore } from "../../stores/memory/memory-store.ts";
import { createScriptedModel, type Script } from "../../testing/scripted-model.ts";
import { createTemporaryRepository } from "../../testing/temporary-repository.ts";
import { createTestService, type TestService } from "../../testing/test-service.ts";

// As `createAgent` and `defineTool` of kit make them.
const agent = `const tool = (name, needsApproval, execute) => ({
  name,
  description: name,
  input: { type: "object", properties: {} },
  needsApproval,
  execute,
});
globalThis.ran ??= [];
const run = (name) => async () => {
  globalThis.ran.push(name);
  return name;
};
export default {
  kind: "kit.agent",
  describe: async () => ({
    instructions: "Pay.",
    tools: [tool("pay", true, run("pay")), tool("look", false, run("look")), tool("sign", true, run("sign"))],
  }),
};
`;

const ran = (): string[] => Reflect.get(globalThis, "ran");
const target = { agent: "payer", instance_id: "1", session: "default" };

function scriptOf(...tools: readonly string[]): Script {
  return ({ prompt }) => {
    const last = prompt.at(-1);
    if (last?.role === "tool" || JSON.stringify(last).includes("Hello")) return { text: "Done." };
    return { toolCalls: tools.map((name, at) => ({ name, id: `call_${at}`, input: {} })) };
  };
}

interface Opened {
  readonly service: TestService;
  readonly events: KitEvent[];
  /** Waits until no work holds the instance, so that the application can release it. */
  rested(): Promise<void>;
}

async function open(script: Script, restMs = 20, payer = agent): Promise<Opened> {
  const repository = await createTemporaryRepository({ "src/agents/payer.ts": payer });
  const model = createScriptedModel(script, { recordCalls: false });
  const service = await createTestService({ root: repository.root, model }, { restMs, running: 2 });
  onTestFinished(async () => {
    await service.close();
    await repository[Symbol.asyncDispose]();
  });
  Reflect.set(globalThis, "ran", []);
  const events: KitEvent[] = [];
  service.app.onEvent((event) => void events.push(event));
  return {
    service,
    events,
    rested: () =>
      expect.poll(async () => (await service.app.instance("payer", "1")).busy, { interval: 5 }).toBe(false),
  };
}

const waits = async (service: TestService, count: number): Promise<readonly string[]> => {
  await expect.poll(async () => (await service.approvals.list()).length, { interval: 5 }).toBe(count);
  return (await service.approvals.list()).map(({ approval_id }) => approval_id);
};

/** The events as readers see them, without ids and times. */
const outlineOf = (events: readonly KitEvent[]): readonly unknown[] =>
  events.map(({ type, turn_id, operation_id, index }) => ({
    type,
    index,
    turn: turn_id === undefined ? undefined : events.findIndex((event) => event.turn_id === turn_id),
    operation: events.findIndex((event) => event.operation_id === operation_id),
  }));

async function work(opened: Opened, restMs: number): Promise<Opened & { readonly record: unknown }> {
  const { service } = opened;
  Reflect.set(globalThis, "ran", []);
  const { dispatch_id } = await service.dispatch(target, "Pay.");
  const [id = ""] = await waits(service, 1);
  if (restMs < 1_000) await opened.rested();
  const before = await service.approvals.list();
  expect(await service.engine.getDispatch(dispatch_id)).toMatchObject({ status: "running", attempts: 1 });
  await service.approvals.decide(id, { approved: true, by: "ann" });
  expect(await service.approvals.list()).toEqual([]);
  expect(before).toMatchObject([{ approval_id: id, tool: "pay", instance_id: "1" }]);
  const record = await service.engine.awaitDispatch(dispatch_id);
  expect(record).toMatchObject({ status: "completed", attempts: 1, result: { text: "Done." } });
  expect(ran()).toEqual(["pay"]);
  return { ...opened, record };
}

test("an input that rested while its call waited has the same events as one that did not rest", async () => {
  // Files that are written while a tool of any agent of the process runs are not loaded.
  const [first, second] = [await open(scriptOf("pay"), 60_000), await open(scriptOf("pay"), 20)];
  const retained = await work(first, 60_000);
  const rested = await work(second, 20);
  expect(outlineOf(rested.events)).toEqual(outlineOf(retained.events));
  expect(rested.events.map(({ type }) => type)).toContain("approval");
});

test("nothing of an operation stays in memory while it rests", async () => {
  setFlagsFromString("--expose-gc");
  const collect: () => void = runInNewContext("gc");
  const prompts: WeakRef<object>[] = [];
  const script = scriptOf("pay");
  const { service, rested } = await open((call, index) => {
    prompts.push(new WeakRef(call.prompt));
    return typeof script === "function" ? script(call, index) : {};
  });
  const { dispatch_id } = await service.dispatch(target, "Pay.");
  const [id = ""] = await waits(service, 1);
  await rested();
  const isGone = (): boolean => {
    collect();
    return prompts[0]?.deref() === undefined;
  };
  await expect.poll(isGone, { interval: 5 }).toBe(true);
  await service.approvals.decide(id, { approved: true });
  expect(await service.engine.awaitDispatch(dispatch_id)).toMatchObject({ status: "completed" });
});

test("a decision during a rest does not run arguments that a hook changes afterwards", async () => {
  const changing = agent.replace(
    "describe: async () => ({",
    "describe: async () => ({ hooks: { beforeTool: () => ({ args: { attempt: (globalThis.attempt = (globalThis.attempt ?? 0) + 1) } }) },",
  );
  const { service, rested, events } = await open(scriptOf("pay"), 20, changing);
  const { dispatch_id } = await service.dispatch(target, "Pay.");
  const [id = ""] = await waits(service, 1);
  expect(await service.approvals.list()).toMatchObject([{ args: { attempt: 1 } }]);
  await rested();
  await service.approvals.decide(id, { approved: true });
  expect(await service.engine.awaitDispatch(dispatch_id)).toMatchObject({ status: "completed" });
  expect(ran()).toEqual([]);
  expect(events.findLast(({ type }) => type === "tool_end")).toMatchObject({
    is_error: true,
    result: expect.stringContaining("approval was requested for other arguments"),
  });
});

test("a call that is denied after its input rested is not run", async () => {
  const { service, rested } = await open(scriptOf("pay"));
  const { dispatch_id } = await service.dispatch(target, "Pay.");
  const [id = ""] = await waits(service, 1);
  await rested();
  await service.approvals.decide(id, { approved: false, reason: "No." });
  expect(await service.engine.awaitDispatch(dispatch_id)).toMatchObject({ status: "completed" });
  expect(JSON.stringify(await service.history(target))).toContain("Reason: No.");
  expect(ran()).toEqual([]);
});

test("calls of one turn wait together, and calls that have run are not run again", async () => {
  const { service, rested, events } = await open(scriptOf("pay", "look", "sign"));
  const { dispatch_id } = await service.dispatch(target, "Pay.");
  const [first = "", second = ""] = await waits(service, 2);
  await rested();
  expect(ran()).toEqual(["look"]);
  await service.approvals.decide(second, { approved: true });
  await expect.poll(() => ran(), { interval: 5 }).toEqual(["look", "sign"]);
  expect(await waits(service, 1)).toEqual([first]);
  await rested();
  await service.approvals.decide(first, { approved: true });
  expect(await service.engine.awaitDispatch(dispatch_id)).toMatchObject({ status: "completed", attempts: 1 });
  expect(ran()).toEqual(["look", "sign", "pay"]);
  const count = (type: string): number => events.filter((event) => event.type === type).length;
  expect(["tool_start", "tool_end", "approval_request", "approval", "turn_end", "idle"].map(count)).toEqual([
    3, 3, 2, 2, 2, 1,
  ]);
});

test("an input that is aborted while it rests ends as one that does not rest", async () => {
  const ends = async (restMs: number): Promise<readonly string[]> => {
    const { service, rested, events } = await open(scriptOf("pay"), restMs);
    const { dispatch_id } = await service.dispatch(target, "Pay.");
    await waits(service, 1);
    if (restMs < 1_000) await rested();
    expect(await service.engine.cancelDispatch(dispatch_id)).toBe(true);
    expect(await service.engine.awaitDispatch(dispatch_id)).toMatchObject({ status: "cancelled" });
    expect(await service.approvals.list()).toEqual([]);
    expect(ran()).toEqual([]);
    const answer = await service.prompt(target, { message: "Hello" });
    expect(answer.text).toBe("Done.");
    return events.map(({ type }) => type);
  };
  expect(await ends(20)).toEqual(await ends(60_000));
});

test("the next input of the session waits for a resting one; inputs of other sessions do not", async () => {
  const { service, rested } = await open(scriptOf("pay"));
  const { dispatch_id } = await service.dispatch(target, "Pay.");
  const [id = ""] = await waits(service, 1);
  await rested();
  const next = await service.dispatch(target, "Hello");
  expect((await service.prompt({ ...target, session: "other" }, { message: "Hello" })).text).toBe("Done.");
  expect(await service.engine.getDispatch(next.dispatch_id)).toMatchObject({ status: "queued" });
  await service.approvals.decide(id, { approved: true });
  await service.engine.awaitDispatch(next.dispatch_id);
  expect(await service.engine.getDispatch(dispatch_id)).toMatchObject({ status: "completed" });
});

test("after a restart, a resting input asks for its approval again, under the same id", async () => {
  const repository = await createTemporaryRepository({ "src/agents/payer.ts": agent });
  const folders = await createTemporaryRepository({});
  const store = new InMemorySessionStore();
  Reflect.set(globalThis, "ran", []);
  const start = () =>
    createTestService(
      {
        root: repository.root,
        model: createScriptedModel(scriptOf("pay")),
        engineFolder: folders.root,
        store,
      },
      { restMs: 20 },
    );
  const first = await start();
  const { dispatch_id } = await first.dispatch(target, "Pay.");
  const [id = ""] = await waits(first, 1);
  await expect.poll(async () => (await first.app.instance("payer", "1")).busy, { interval: 5 }).toBe(false);
  await first.close();
  const second = await start();
  onTestFinished(async () => {
    await second.close();
    await repository[Symbol.asyncDispose]();
    await folders[Symbol.asyncDispose]();
  });
  expect(await waits(second, 1)).toEqual([id]);
  await second.approvals.decide(id, { approved: true });
  expect(await second.engine.awaitDispatch(dispatch_id)).toMatchObject({ status: "completed", attempts: 1 });
  expect(ran()).toEqual(["pay"]);
});

test("an input resumes on an instance that was created again in the meantime", async () => {
  const { service, rested } = await open(scriptOf("pay"));
  const { dispatch_id } = await service.dispatch(target, "Pay.");
  const [id = ""] = await waits(service, 1);
  await rested();
  await service.reload();
  await service.approvals.decide(id, { approved: true });
  expect(await service.engine.awaitDispatch(dispatch_id)).toMatchObject({ status: "completed", attempts: 1 });
  expect(ran()).toEqual(["pay"]);
});

/** Its tool is called again after each rest, and asks what `message` says. */
const askingWith = (message: string): string =>
  agent.replace(
    "tools: [",
    `tools: [{ ...tool("guess", false, async (_, { ask }) => {
      globalThis.ran.push("asked");
      const answer = await ask({ message: ${message}, schema: { type: "boolean" } });
      return answer.action;
    }), idempotent: true }, `,
  );

test("a question whose text is another at each call waits once, is new to readers, and starts no work by itself", async () => {
  const opened = await open(scriptOf("guess"), 20, askingWith(`"Now " + globalThis.ran.length + "?"`));
  const { service, rested, events } = opened;
  const { dispatch_id } = await service.dispatch(target, "Pay.");
  const [first = ""] = await waits(service, 1);
  await rested();
  await service.approvals.decide(first, { approved: true, result: true });
  await expect.poll(() => ran().length, { interval: 5 }).toBe(2);
  const [second = ""] = await waits(service, 1);
  expect(second).not.toBe(first);
  await rested();
  await delay(150);
  expect(ran()).toHaveLength(2);
  expect(await service.approvals.list()).toMatchObject([{ approval_id: second, message: "Now 2?" }]);
  const emitted = events.flatMap((event) =>
    event.type === "approval_request" || event.type === "approval" ? [[event.type, event.approval_id]] : [],
  );
  expect(emitted).toEqual([
    ["approval_request", first],
    ["approval", first],
    ["approval_request", second],
  ]);
  await service.abort(target);
  expect(await service.engine.awaitDispatch(dispatch_id)).toMatchObject({ status: "cancelled" });
});
