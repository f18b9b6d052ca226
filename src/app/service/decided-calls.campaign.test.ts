import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { createApprovals } from "../../agents/approvals/approvals.ts";
import { KitError } from "../../base/kit-error.ts";
import { untilAborted } from "../../engine/cases/engine-check.ts";
import type { Engine } from "../../engine/contract.ts";
import { createEmbeddedEngine } from "../../engine/embedded/create-embedded-engine.ts";
import { createPostgresEngine } from "../../engine/postgres/create-postgres-engine.ts";
import type { SessionStore } from "../../stores/contract.ts";
import { PostgresSessionStore } from "../../stores/postgres/postgres-store.ts";
import { SqliteSessionStore } from "../../stores/sqlite/sqlite-store.ts";
import { postgresForTests } from "../../testing/postgres-for-tests.ts";
import { createScriptedModel } from "../../testing/scripted-model.ts";
import { createTemporaryRepository } from "../../testing/temporary-repository.ts";
import { openTestParts } from "../../testing/test-app.ts";
import { createService } from "./create-service.ts";
import type { ProjectService } from "./service.ts";

const server = postgresForTests();

// As `createAgent` and `defineTool` of kit make them.
const payer = `globalThis.paid ??= [];
const pay = {
  name: "pay",
  description: "Pays.",
  input: { type: "object", properties: { euros: { type: "integer" } } },
  needsApproval: true,
  execute: async ({ euros }) => {
    globalThis.paid.push(euros);
    return "Paid.";
  },
};
export default { kind: "kit.agent", describe: async () => ({ instructions: "Pay.", tools: [pay] }) };
`;
const payday = `import payer from "../agents/payer.ts";
export async function run(ctx) {
  const { text } = await (await ctx.init(payer)).session().prompt("Pay.");
  return text;
}
`;

const paid = (): number[] => Reflect.get(globalThis, "paid") ?? [];
const target = { agent: "payer", instance_id: "1", session: "default" };

interface Opened {
  /**
   * Opens the project in another process, so to speak. `holds`: the log never gets a decision. `isStuck`: the process hears of
   * no row that it writes for a call.
   */
  open(options?: { readonly holds?: boolean; readonly isStuck?: boolean }): Promise<ProjectService>;
}

async function project(engine: "embedded" | "postgres"): Promise<Opened> {
  const repository = await createTemporaryRepository({
    "src/agents/payer.ts": payer,
    "src/workflows/payday.ts": payday,
  });
  onTestFinished(() => repository[Symbol.asyncDispose]());
  Reflect.set(globalThis, "paid", []);
  const { root } = repository;
  const schema = `decided_${Math.random().toString(36).slice(2)}`;
  const openEngine = async (): Promise<Engine> =>
    engine === "embedded"
      ? createEmbeddedEngine({ folder: join(root, "engine"), limits: { leaseMs: 500, backoffMs: 1 } })
      : await createPostgresEngine({ url: server.url, schema, limits: { backoffMs: 1 } });
  const openStore = (): SessionStore =>
    engine === "embedded"
      ? new SqliteSessionStore({ file: join(root, "sessions.db") })
      : new PostgresSessionStore({ url: server.url, schema });
  return {
    async open({ holds = false, isStuck = false } = {}) {
      const store = openStore();
      const death = new AbortController();
      if (holds) holdDecisions(store, death.signal);
      const model = createScriptedModel(({ prompt }) =>
        prompt.at(-1)?.role === "tool"
          ? { text: "Done." }
          : { toolCalls: [{ name: "pay", id: "call_1", input: { euros: 5 } }] },
      );
      const parts = { ...(await openTestParts({ root, store, model })), approvals: createApprovals() };
      const service = await createService(parts, {
        engine: isStuck ? stickAfterRows(await openEngine(), death.signal) : await openEngine(),
        restMs: 60_000,
      });
      onTestFinished(async () => {
        death.abort(new KitError({ code: "lease_lost", message: "Dead." }));
        await service.close({ timeoutMs: 0 });
        await store.close();
      });
      return service;
    },
  };
}

/** Makes the append of a decision wait until the process dies. */
function holdDecisions(store: SessionStore, death: AbortSignal): void {
  const append = store.append.bind(store);
  store.append = (request) =>
    request.entries.some((entry) => entry.type === "note" && entry.name === "approval")
      ? untilAborted({ signal: death })
      : append(request);
}

/** Makes the process wait after the row of a call, until it dies. */
function stickAfterRows(engine: Engine, signal: AbortSignal): Engine {
  const { waitingCalls } = engine;
  if (waitingCalls === undefined) return engine;
  const add: typeof waitingCalls.add = async (...call) => {
    await waitingCalls.add(...call);
    return await untilAborted({ signal });
  };
  return { ...engine, waitingCalls: { ...waitingCalls, add } };
}

async function waitingId({ approvals }: ProjectService): Promise<string> {
  await expect.poll(async () => (await approvals.list()).length, { timeout: 20_000 }).toBe(1);
  return (await approvals.list())[0]?.approval_id ?? "";
}

for (const engine of ["embedded", "postgres"] as const) {
  test.each([
    ["denied", "a dispatch", []],
    ["approved", "a dispatch", [5]],
    ["denied", "a run", []],
    ["approved", "a run", [5]],
  ])(
    `a call of the ${engine} engine that was %s stays decided for %s if the process died before its log had the decision`,
    async (name, kind, expected) => {
      const approved = name === "approved";
      const { open } = await project(engine);
      const first = await open({ holds: true });
      const id =
        kind === "a run"
          ? (await first.startRun("payday", {})).run_id
          : (await first.dispatch(target, "Pay.")).dispatch_id;
      const call = await waitingId(first);
      await first.approvals.decide(call, { approved, by: "ann" });
      // The held append never ends, as in a dead process.
      await first.engine.drain({ timeoutMs: 0 });
      expect(paid()).toEqual([]);
      const second = await open();
      const decision = { approved, by: "ann" };
      await expect(second.approvals.decide(call, { approved: !approved })).rejects.toMatchObject({
        code: "not_found",
        message: expect.stringContaining("by ann"),
        meta: { decision },
      });
      const record = await (kind === "a run" ? second.engine.awaitRun(id) : second.engine.awaitDispatch(id));
      expect(record).toMatchObject({ status: "completed" });
      expect(paid()).toEqual(expected);
      expect(await second.approvals.list()).toEqual([]);
    },
  );

  test.each([
    ["at once by the reader of its event", "open"],
    ["before its event", "decided"],
  ])(
    `a call of the ${engine} engine whose process died between its row and its event is decided %s`,
    async (_, state) => {
      const { open } = await project(engine);
      const first = await open({ isStuck: true });
      const { dispatch_id, operation_id } = await first.dispatch(target, "Pay.");
      const call = await waitingId(first);
      const asked = { ...target, operation_id };
      const { events } = await first.operationEvents(asked, {});
      expect(events.map(({ type }) => type)).not.toContain("approval_request");
      if (state === "decided") await first.approvals.decide(call, { approved: true });
      await first.engine.drain({ timeoutMs: 0 });
      const second = await open();
      const { signal } = new AbortController();
      const types: string[] = [];
      for await (const event of await second.followOperation(asked, { after: 0, signal })) {
        if (event.type.startsWith("approval")) types.push(event.type);
        if (event.type !== "approval_request" || state === "decided") continue;
        expect(await second.approvals.list()).toMatchObject([{ approval_id: call }]);
        await second.approvals.decide(event.approval_id, { approved: true });
      }
      expect(types).toEqual(["approval_request", "approval"]);
      expect(await second.engine.awaitDispatch(dispatch_id)).toMatchObject({ status: "completed" });
      expect(paid()).toEqual([5]);
    },
  );

  test(`a process of the ${engine} engine that does not work lists and decides the calls of the one that does`, async () => {
    const { open } = await project(engine);
    const services = [await open(), await open()] as const;
    const prompts = ["1", "2", "3", "4"].map((instance_id, at) =>
      services[0].dispatch({ ...target, instance_id }, `Pay ${at}.`),
    );
    const receipts = await Promise.all(prompts);
    for (const each of services)
      await expect.poll(async () => (await each.approvals.list()).length, { timeout: 20_000 }).toBe(4);
    for (const [at, { approval_id }] of (await services[1].approvals.list()).entries()) {
      const [one, other] = at % 2 === 0 ? services : services.toReversed();
      const from = performance.now();
      await one?.approvals.decide(approval_id, { approved: true });
      await expect(other?.approvals.decide(approval_id, { approved: false })).rejects.toMatchObject({
        meta: { decision: { approved: true } },
      });
      await expect.poll(() => paid().length, { interval: 5 }).toBe(at + 1);
      expect(performance.now() - from).toBeLessThan(5_000);
    }
    for (const { dispatch_id } of receipts)
      expect(await services[1].engine.awaitDispatch(dispatch_id)).toMatchObject({ status: "completed" });
  });

  test(`a waiting call of the ${engine} engine ends with its cancelled dispatch, and cannot be decided`, async () => {
    const { open } = await project(engine);
    const first = await open();
    const { dispatch_id } = await first.dispatch(target, "Pay.");
    const call = await waitingId(first);
    await first.engine.cancelDispatch(dispatch_id);
    await expect(first.approvals.decide(call, { approved: true })).rejects.toMatchObject({
      code: "not_found",
    });
    expect(await first.approvals.list()).toEqual([]);
    await first.engine.awaitDispatch(dispatch_id);
    expect(paid()).toEqual([]);
  });
}
