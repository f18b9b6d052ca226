import { expect, onTestFinished, test } from "vitest";
import { storeUnavailable } from "../../protocol/error-code.ts";
import { textOf } from "../../protocol/read-records.ts";
import { virtual } from "../../sandboxes/virtual/virtual-sandbox.ts";
import type { SessionStore } from "../../stores/contract.ts";
import { InMemorySessionStore } from "../../stores/memory/memory-store.ts";
import { createScriptedModel, type Script } from "../../testing/scripted-model.ts";
import { createTemporaryRepository } from "../../testing/temporary-repository.ts";
import { createTestService, type TestService } from "../../testing/test-service.ts";

const agent = `export default { kind: "kit.agent", describe: async () => ({ instructions: "Help.", compaction: { contextWindowTokens: 400, reserveTokens: 100, keepRecentTokens: 1 } }) };\n`;
const flow = `import helper from "../agents/helper.ts";
export async function run(ctx) {
  const session = (await ctx.init(helper)).session();
  return (await session.prompt("from the run")).text;
}`;
const payer = `const pay = { name: "pay", description: "Pays.", input: { type: "object" }, execute: async () => (await outage.runOnce()).stdout };
export default { kind: "kit.agent", describe: async () => ({ tools: [pay], sandbox: outage.sandbox, allowShell: true }) };
`;
const files = {
  "src/agents/helper.ts": agent,
  "src/agents/payer.ts": payer,
  "src/workflows/flow.ts": flow,
};
const one = { agent: "helper", instance_id: "1", session: "default" };

/** A store that can be away, as one over a network is. */
interface FailingStore extends SessionStore {
  isAway: boolean;
  /** Is called before each append; may take the store away. */
  onAppend: (texts: string) => void;
  /** Calls that met it away. */
  refused: number;
}

function createFailingStore(): FailingStore {
  const store = new InMemorySessionStore();
  const unlessDown = async <Value>(work: () => Value): Promise<Value> => {
    if (failing.isAway) {
      failing.refused += 1;
      throw storeUnavailable({ store: "The session store", reason: "it is away", hint: "" });
    }
    return work();
  };
  const failing: FailingStore = {
    isAway: false,
    onAppend: () => undefined,
    refused: 0,
    append: (request) => {
      failing.onAppend(JSON.stringify(request.entries));
      return unlessDown(() => store.append(request));
    },
    read: (key, after) => unlessDown(() => store.read(key, after)),
    info: (key) => unlessDown(() => store.info(key)),
    list: (filter) => unlessDown(() => store.list(filter)),
    delete: (key) => unlessDown(() => store.delete(key)),
    close: () => undefined,
  };
  return failing;
}

async function open(script: Script = () => ({ text: "done" })) {
  const repository = await createTemporaryRepository(files);
  const store = createFailingStore();
  const reported: string[] = [];
  const service = await createTestService(
    { root: repository.root, model: createScriptedModel(script), store },
    { attempts: 2, backoffMs: 1 },
    (error) => reported.push(String(error)),
  );
  onTestFinished(async () => {
    await service.close();
    await repository[Symbol.asyncDispose]();
  });
  return { service, store, reported };
}

async function untilRefused(store: FailingStore, times: number): Promise<void> {
  await expect.poll(() => store.refused, { interval: 10 }).toBeGreaterThanOrEqual(times);
}

const inputsOf = async (service: TestService): Promise<readonly string[]> =>
  (await service.history(one)).flatMap((message) =>
    message.role === "user" && message.source === undefined ? [textOf(message)] : [],
  );

test("accepted inputs wait for an unavailable store, longer than their attempts last, and the outage is reported once", async () => {
  const { service, store, reported } = await open();
  store.isAway = true;
  const receipts = [];
  for (const [index, id] of ["1", "1", "2", "3"].entries())
    receipts.push(await service.dispatch({ ...one, instance_id: id }, `input ${index}`));
  const withKey = service.prompt(one, { message: "keyed" }, { idempotencyKey: "k" });
  await expect(service.prompt({ ...one, session: "x" }, { message: "x" })).rejects.toMatchObject({
    code: "store_unavailable",
  });
  await untilRefused(store, 10);
  store.isAway = false;
  for (const { dispatch_id } of receipts) {
    const record = await service.engine.awaitDispatch(dispatch_id);
    expect(record).toMatchObject({ status: "completed", attempts: 1 });
  }
  expect((await withKey).text).toBe("done");
  expect(await inputsOf(service)).toEqual(["input 0", "input 1", "keyed"]);
  expect(reported).toEqual([expect.stringContaining("Accepted work waits for it")]);
});

test("an outage during an operation costs no attempt, and the history has no duplicates", async () => {
  const { service, store } = await open(({ prompt }) =>
    prompt.at(-1)?.role === "tool" ? { text: "done" } : { toolCalls: [{ name: "look", input: {} }] },
  );
  let appends = 0;
  store.onAppend = () => {
    appends += 1;
    if (appends % 2 === 0 && appends < 12) {
      store.isAway = true;
      setTimeout(() => {
        store.isAway = false;
      }, 5);
    }
  };
  const { dispatch_id } = await service.dispatch(one, "go");
  expect(await service.engine.awaitDispatch(dispatch_id)).toMatchObject({ status: "completed", attempts: 1 });
  expect(await inputsOf(service)).toEqual(["go"]);
});

test("a run waits for an unavailable store, and ends once", async () => {
  const { service, store } = await open();
  store.isAway = true;
  const { run_id } = await service.startRun("flow", {});
  await untilRefused(store, 3);
  expect(await service.engine.getRun(run_id)).toMatchObject({ status: "running" });
  store.isAway = false;
  expect(await service.engine.awaitRun(run_id)).toMatchObject({ status: "completed", result: "done" });
  const events = await service.engine.events.read(`run/${run_id}`, { types: ["run_end"] });
  expect(events).toHaveLength(1);
});

test("a task resumes after an outage as the same task, and its parent sees no failure", async () => {
  const { service, store } = await open(({ prompt }) => {
    const output = JSON.stringify(prompt.slice(1));
    if (prompt.at(-1)?.role === "tool")
      return { text: output.includes("cannot be used") ? "failed" : "done" };
    if (output.includes("the part")) return { text: "part done" };
    return { toolCalls: [{ name: "task", input: { prompt: "the part" } }] };
  });
  store.onAppend = (entries) => {
    if (!entries.includes("part done") || store.refused > 0) return;
    store.isAway = true;
    setTimeout(() => {
      store.isAway = false;
    }, 300);
  };
  const { dispatch_id } = await service.dispatch(one, "go");
  const record = await service.engine.awaitDispatch(dispatch_id);
  expect(record).toMatchObject({ status: "completed", attempts: 1, result: { text: "done" } });
  expect(store.refused).toBeGreaterThan(0);
});

test("a compaction is done after an outage", async () => {
  const { service, store } = await open(() => ({ text: "word ".repeat(300) }));
  await service.prompt(one, { message: "first" });
  store.onAppend = (entries) => {
    if (!entries.includes('"compaction"') || store.refused > 0) return;
    store.isAway = true;
    setTimeout(() => {
      store.isAway = false;
    }, 200);
  };
  const { dispatch_id } = await service.dispatch(one, "second");
  expect(await service.engine.awaitDispatch(dispatch_id)).toMatchObject({ status: "completed", attempts: 1 });
  expect(store.refused).toBeGreaterThan(0);
  expect((await service.history(one))[0]).toMatchObject({ source: "summary" });
});

test("work that waits for a store can be cancelled, and does not keep a stop waiting", async () => {
  const { service, store } = await open();
  store.isAway = true;
  const { dispatch_id } = await service.dispatch(one, "go");
  const { run_id } = await service.startRun("flow", {});
  await service.dispatch({ ...one, instance_id: "2" }, "go");
  await untilRefused(store, 4);
  expect(await service.engine.cancelDispatch(dispatch_id)).toBe(true);
  expect(await service.engine.awaitDispatch(dispatch_id)).toMatchObject({ status: "cancelled" });
  expect(await service.engine.cancelRun(run_id)).toBe(true);
  expect(await service.engine.awaitRun(run_id)).toMatchObject({ status: "cancelled" });
  await service.startRun("flow", {});
  await untilRefused(store, store.refused + 2);
  const begun = performance.now();
  await service.close({ timeoutMs: 30_000 });
  expect(performance.now() - begun).toBeLessThan(5_000);
});

test.each(["model_error", "aborted"])("an idempotency key does not keep the error %s", async (code) => {
  let isBroken = true;
  const stuck = Promise.withResolvers<void>();
  const { service } = await open(() => {
    if (!isBroken) return { text: "now" };
    if (code === "model_error") throw new TypeError("The model is broken.");
    stuck.resolve();
    return { text: "never", delayMs: 600_000 };
  });
  const ask = () => service.prompt(one, { message: "ask" }, { idempotencyKey: "k" });
  const first = ask();
  first.catch(() => undefined);
  if (code === "aborted") {
    await stuck.promise;
    await service.abort(one);
  }
  await expect(first).rejects.toMatchObject({ code });
  isBroken = false;
  const replies = await Promise.all([ask(), ask()]);
  expect(replies.map(({ text }) => text)).toEqual(["now", "now"]);
  expect((await ask()).text).toBe("now");
  expect(await inputsOf(service)).toEqual(["ask"]);
  await expect(service.prompt(one, { message: "other" }, { idempotencyKey: "k" })).rejects.toMatchObject({
    code: "conflict",
  });
});

test("the same key starts a run again after a temporary failure, but not after its completion", async () => {
  let isBroken = true;
  const { service } = await open(() => {
    if (isBroken) throw new TypeError("The model is broken.");
    return { text: "now" };
  });
  const start = async () => await service.startRun("flow", {}, { idempotencyKey: "k" });
  const first = await start();
  expect(await service.engine.awaitRun(first.run_id)).toMatchObject({
    status: "failed",
    error: { type: "model_error" },
  });
  isBroken = false;
  const second = await start();
  expect(second.run_id).not.toBe(first.run_id);
  expect(await service.engine.awaitRun(second.run_id)).toMatchObject({ status: "completed" });
  expect((await start()).run_id).toBe(second.run_id);
  expect(await service.engine.getRun(first.run_id)).toMatchObject({ status: "failed" });
});

const toolAgent = `globalThis.kitToolRuns ??= [];
const tool = (name, needsApproval = false) => ({
  name,
  description: name,
  input: { type: "object", properties: {} },
  needsApproval,
  execute: async () => {
    globalThis.kitToolRuns.push(name);
    return "moved 40 files";
  },
});
export default { kind: "kit.agent", describe: async () => ({ instructions: "Move.", tools: [tool("move"), tool("sign", true)] }) };
`;

/** An agent whose tools may run once, over a store that goes away as soon as an append has such a text. */
async function openMover(tools: readonly string[], away: string) {
  Reflect.set(globalThis, "kitToolRuns", []);
  const repository = await createTemporaryRepository({ "src/agents/helper.ts": toolAgent });
  const store = createFailingStore();
  let requestCount = 0;
  const model = createScriptedModel(({ prompt }) => {
    requestCount += 1;
    if (prompt.at(-1)?.role === "tool" || JSON.stringify(prompt.at(-1)).includes("next"))
      return { text: "all done" };
    return { toolCalls: tools.map((name) => ({ name, input: {} })) };
  });
  const reported: unknown[] = [];
  const options = { root: repository.root, model, store };
  const service = await createTestService(options, { attempts: 2, backoffMs: 1 }, (error) =>
    reported.push(error),
  );
  let isOver = false;
  const close = async (): Promise<void> => {
    if (isOver) return;
    isOver = true;
    await service.close();
    await repository[Symbol.asyncDispose]();
  };
  onTestFinished(close);
  store.onAppend = (entries) => {
    if (entries.includes(away) && store.refused === 0) store.isAway = true;
  };
  const runs = (): string[] => Reflect.get(globalThis, "kitToolRuns");
  const told503 = { code: "store_unavailable" };
  return { service, store, reported, runs, told503, close, asked: () => requestCount };
}

async function resultsIn(service: TestService): Promise<readonly string[]> {
  const history = await service.history(one);
  return history.flatMap((message) =>
    (message.role === "tool" ? message.content : []).map((part) => JSON.stringify(part)),
  );
}

test("a result is kept in memory during an outage: the tool runs once, and its result is stored once", async () => {
  const { service, store, runs, asked } = await openMover(["move"], "moved 40 files");
  const { dispatch_id } = await service.dispatch(one, "go");
  await untilRefused(store, 3);
  store.isAway = false;
  expect(await service.engine.awaitDispatch(dispatch_id)).toMatchObject({ status: "completed", attempts: 1 });
  expect(runs()).toEqual(["move"]);
  expect(await resultsIn(service)).toEqual([expect.stringContaining("moved 40 files")]);
  expect(asked()).toBe(2);
});

test("after a reply with 503, the result of the prompt is written once the store is back, before later entries", async () => {
  const { service, store, runs, told503 } = await openMover(["move"], "moved 40 files");
  await expect(service.prompt(one, { message: "go" })).rejects.toMatchObject(told503);
  await expect(service.prompt(one, { message: "next" })).rejects.toMatchObject(told503);
  store.isAway = false;
  // No caller asks for the session again: the store gets the result all the same.
  await expect.poll(() => resultsIn(service)).toEqual([expect.stringContaining("moved 40 files")]);
  expect((await service.prompt(one, { message: "next" })).text).toBe("all done");
  expect(runs()).toEqual(["move"]);
  // The answer to the first came while the store refused the result, and was kept with it.
  const roles = (await service.history(one)).map(({ role }) => role).join("+");
  expect(roles).toBe("user+assistant+tool+assistant+user+assistant");
});

test("results and decisions of calls of a suspended operation survive an outage", async () => {
  const { service, store, runs } = await openMover(["move", "sign"], '"approval"');
  const { dispatch_id } = await service.dispatch(one, "go");
  await expect.poll(async () => (await service.approvals.list()).length).toBe(1);
  const [first] = await service.approvals.list();
  await service.approvals.decide(String(first?.approval_id), { approved: true });
  await untilRefused(store, 2);
  store.isAway = false;
  expect(await service.engine.awaitDispatch(dispatch_id)).toMatchObject({ status: "completed" });
  expect(runs()).toEqual(["move", "sign"]);
  expect((await resultsIn(service)).filter((result) => result.includes("unknown"))).toEqual([]);
});

test("an answer that could not be stored is returned without another call of the model", async () => {
  const { service, store, asked } = await openMover([], "all done");
  const { dispatch_id } = await service.dispatch(one, "next");
  await untilRefused(store, 2);
  store.isAway = false;
  const record = await service.engine.awaitDispatch(dispatch_id);
  expect(record).toMatchObject({ status: "completed", attempts: 1, result: { text: "all done" } });
  expect(asked()).toBe(1);
});

test("a session that is deleted during an outage does not reappear with a late result", async () => {
  const { service, store, told503 } = await openMover(["move"], "moved 40 files");
  await expect(service.prompt(one, { message: "go" })).rejects.toMatchObject(told503);
  store.isAway = false;
  await store.delete(one);
  expect((await service.prompt(one, { message: "next" })).text).toBe("all done");
  expect(await resultsIn(service)).toEqual([]);
});

test("a stop writes what it can, and reports the rest as lost", async () => {
  const back = await openMover(["move"], "moved 40 files");
  await expect(back.service.prompt(one, { message: "go" })).rejects.toMatchObject(back.told503);
  back.store.isAway = false;
  await back.close();
  expect(JSON.stringify(await back.store.read(one))).toContain("moved 40 files");
  const away = await openMover(["move"], "moved 40 files");
  await expect(away.service.prompt(one, { message: "go" })).rejects.toMatchObject(away.told503);
  const begun = performance.now();
  await away.close();
  expect(performance.now() - begun).toBeLessThan(3_000);
  expect(away.reported.map(String)).toContainEqual(expect.stringContaining("lost the last entries"));
});

test.each([
  { name: "bash", syscall: "spawn sh", isRepeated: true },
  { name: "bash", syscall: "open", isRepeated: false },
  // A tool of the application may have started another process before.
  { name: "pay", syscall: "spawn sh", isRepeated: false },
])(
  "a call of $name that must not run twice is repeated after $syscall found no file handle: $isRepeated",
  async ({ name, syscall, isRepeated }) => {
    let calls = 0;
    const runOnce = async () => {
      calls += 1;
      if (calls === 1) throw Object.assign(new Error("EMFILE"), { code: "EMFILE", syscall });
      return { exit_code: 0, stdout: "done", stderr: "", dropped_bytes: 0, timed_out: false, duration_ms: 1 };
    };
    const { open: openVirtual } = virtual();
    const sandbox = {
      name: "failing",
      open: async (owner: Parameters<typeof openVirtual>[0]) =>
        new Proxy(await openVirtual(owner), {
          get: (target, key) => (key === "exec" ? runOnce : Reflect.get(target, key, target)),
        }),
    };
    Object.assign(globalThis, { outage: { sandbox, runOnce } });
    const answers: string[] = [];
    const { service } = await open(({ prompt }) => {
      const last = prompt.at(-1);
      if (last?.role !== "tool") return { toolCalls: [{ name, input: { command: "echo" } }] };
      answers.push(JSON.stringify(last.content));
      return { text: "paid" };
    });
    const { dispatch_id } = await service.dispatch({ ...one, agent: "payer" }, "Pay.");
    const ended = await service.engine.awaitDispatch(dispatch_id);
    expect(ended).toMatchObject({ status: "completed", attempts: 1 });
    expect([calls, answers.length]).toEqual([isRepeated ? 2 : 1, 1]);
    expect(answers[0]).toContain(isRepeated ? "done" : "EMFILE");
    expect(answers[0]).not.toContain("unknown");
  },
);
