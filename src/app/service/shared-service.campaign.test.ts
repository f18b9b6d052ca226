import { expect, onTestFinished, test } from "vitest";
import { createPostgresEngine } from "../../engine/postgres/create-postgres-engine.ts";
import type { WorkspaceStore } from "../../protocol/workspace-store.ts";
import { virtual } from "../../sandboxes/virtual/virtual-sandbox.ts";
import { PostgresSessionStore } from "../../stores/postgres/postgres-store.ts";
import { postgresForTests } from "../../testing/postgres-for-tests.ts";
import { createScriptedModel, type ScriptedTurn } from "../../testing/scripted-model.ts";
import { createTemporaryRepository } from "../../testing/temporary-repository.ts";
import { openTestParts } from "../../testing/test-app.ts";
import { describeEngine, sharedEngineOf } from "../config/engine-config.ts";
import { knownSecrets } from "../runtime/known-secrets.ts";
import { createService } from "./create-service.ts";
import type { ProjectService } from "./service.ts";

const server = postgresForTests();

const files = {
  "src/agents/echo.ts": `export default { kind: "kit.agent", describe: async () => ({ instructions: "Echo." }) };
`,
};

interface NodeOptions {
  readonly agents?: Readonly<Record<string, string>>;
  readonly answer?: (call: number) => ScriptedTurn | Promise<ScriptedTurn>;
  readonly store?: PostgresSessionStore;
  /** The pause before the second attempt at an input. */
  readonly backoffMs?: number;
}

async function openNode(
  schema: string,
  {
    agents = files,
    answer = () => ({ text: "Hello yourself." }),
    store = new PostgresSessionStore({ url: server.url, schema }),
    backoffMs = 1_000,
  }: NodeOptions = {},
): Promise<ProjectService> {
  const { root } = await createTemporaryRepository(agents);
  const model = createScriptedModel(async (_, call) => await answer(call));
  const sandbox = virtual({ root, isolation: "off" });
  const parts = { ...(await openTestParts({ root, store, model, sandbox })), persistedBytes: 1_000_000 };
  const engine = await createPostgresEngine({ url: server.url, schema, limits: { backoffMs } });
  const service = await createService(parts, { engine });
  onTestFinished(async () => {
    await service.close({ timeoutMs: 0 });
    await store.close();
  });
  return service;
}

test("every machine runs accepted work, and sessions continue on the owner of their instance", async () => {
  const [one, two] = [await openNode("service_1"), await openNode("service_1")];
  const ids = Array.from({ length: 8 }, (_, number) => `i${number}`);
  for (const node of [one, two]) {
    const receipts = await Promise.all(
      ids.map((id) => node.dispatch({ agent: "echo", instance_id: id, session: "default" }, "Hello.")),
    );
    const ended = await Promise.all(receipts.map(({ dispatch_id }) => two.engine.awaitDispatch(dispatch_id)));
    expect(ended.map((record) => record?.status)).toEqual(ids.map(() => "completed"));
  }
  const starts = async (id: string): Promise<number> => {
    const events = await one.engine.events.read(`agent/echo/${id}`);
    return events.filter(({ type }) => type === "operation_start").length;
  };
  // Events do not wait for the disk: another machine reads those of an ended input a moment later.
  await expect.poll(() => Promise.all(ids.map(starts)), { timeout: 20_000 }).toEqual(ids.map(() => 2));
});

test("messages join the operation that runs, whichever machine accepts them", async () => {
  const called = Promise.withResolvers<void>();
  const gate = Promise.withResolvers<void>();
  const options: NodeOptions = {
    agents: {
      "src/agents/echo.ts": `export default {
  kind: "kit.agent",
  describe: async () => ({
    tools: [{ name: "work", description: "Works.", input: { type: "object" }, execute: async () => "Worked." }],
  }),
};
`,
    },
    answer: async (call) => {
      if (call > 0) return { text: "Done." };
      called.resolve();
      await gate.promise;
      return { toolCalls: [{ name: "work", input: {} }] };
    },
  };
  const [one, two] = [await openNode("service_10", options), await openNode("service_10", options)];
  const target = { agent: "echo", instance_id: "i", session: "default" };
  const begun = await one.dispatch(target, "Begin.");
  await called.promise;
  const receipts = [
    await one.dispatch(target, "left", { join: "next_turn" }),
    await two.dispatch(target, "right", { join: "next_turn" }),
  ];
  const known = () => [one, two].map(({ engine }) => engine.waitingInputs?.(target).length);
  await expect.poll(known, { timeout: 20_000 }).toContain(2);
  gate.resolve();
  const joined = { status: "completed", result: { joined: begun.operation_id } };
  const ended = receipts.map(({ dispatch_id }) => two.engine.awaitDispatch(dispatch_id));
  expect(await Promise.all(ended)).toMatchObject([joined, joined]);
  const events = await two.engine.events.read("agent/echo/i");
  expect(events.filter(({ type }) => type === "joined")).toMatchObject(
    ["left", "right"].map((message, at) => ({
      message,
      operation_id: begun.operation_id,
      joined_from: receipts[at]?.operation_id,
    })),
  );
});

test("an input that is cancelled between two attempts ends once, whichever machine is asked and which one works for it then", async () => {
  const store = new PostgresSessionStore({ url: server.url, schema: "service_6" });
  onTestFinished(() => store.close());
  const fails = {
    backoffMs: 3_600_000,
    answer: () => Promise.reject(new Error("The provider is down.")),
  };
  const [one, two] = [await openNode("service_6", fails), await openNode("service_6", fails)];
  const sessions = Array.from({ length: 8 }, (_, number) => ({
    agent: "echo",
    instance_id: `i${number}`,
    session: "default",
  }));
  const receipts = await Promise.all(sessions.map((session) => one.dispatch(session, "Hello.")));
  const records = () => Promise.all(receipts.map(({ dispatch_id }) => two.engine.getDispatch(dispatch_id)));
  await expect
    .poll(async () => (await records()).every((record) => record?.next_attempt_at !== undefined), {
      timeout: 20_000,
    })
    .toBe(true);
  // A machine with other work can interrupt a first attempt, and a second one is made.
  const before = await records();
  const cancel = async (from: number, to: number): Promise<void> => {
    for (const { dispatch_id } of receipts.slice(from, to)) await two.engine.cancelDispatch(dispatch_id);
  };
  await cancel(0, 4);
  await Promise.all([cancel(4, 8), one.close({ timeoutMs: 0 })]);
  for (const [at, { dispatch_id }] of receipts.entries()) {
    expect(await two.engine.awaitDispatch(dispatch_id)).toMatchObject({
      status: "cancelled",
      attempts: before[at]?.attempts,
    });
    const { agent, instance_id } = sessions[at] ?? { agent: "", instance_id: "" };
    const events = await two.engine.events.read(`agent/${agent}/${instance_id}`);
    expect(events.filter(({ type }) => type === "operation")).toMatchObject([{ is_aborted: true }]);
    const notes = (await store.read({ agent, instance_id, session: "default" })).filter(
      ({ type }) => type === "note",
    );
    expect(notes).toMatchObject([{ name: "operation_end", value: { status: "aborted", dispatch_id } }]);
  }
});

test("work for an agent that a node's files lack waits while other nodes live, and runs on a node that has it", async () => {
  const other = { "src/agents/other.ts": files["src/agents/echo.ts"] };
  const [one, two] = [await openNode("service_2"), await openNode("service_2", { agents: other })];
  const ids = Array.from({ length: 16 }, (_, number) => `i${number}`);
  const owned = () => ids.filter((instance_id) => two.engine.cluster?.owns({ agent: "echo", instance_id }));
  await expect.poll(() => owned().length).toBeGreaterThan(0);
  const [id = ""] = owned();
  const receipt = await one.dispatch({ agent: "echo", instance_id: id, session: "default" }, "Hello.");
  const waiting = () => one.engine.getDispatch(receipt.dispatch_id);
  await expect
    .poll(async () => (await waiting())?.error?.message)
    .toContain('The agent "echo" cannot be used');
  expect(await waiting()).toMatchObject({ status: "queued", attempts: 0 });
  await two.close({ timeoutMs: 0 });
  expect(await one.engine.awaitDispatch(receipt.dispatch_id)).toMatchObject({ status: "completed" });
});

test("a run's agents append nothing more once another node has taken the run over", async () => {
  const store = new PostgresSessionStore({ url: server.url, schema: "service_3" });
  onTestFinished(() => store.close());
  const workflow = `const agent = { kind: "kit.agent", describe: async () => ({ name: "helper" }) };
export default { kind: "kit.workflow", run: async ({ init }) => (await (await init(agent, { id: "pr-7" })).session()).prompt("Hello.") };
`;
  const key = { agent: "helper", instance_id: "pr-7", session: "default" };
  const node = await openNode("service_3", {
    agents: { "src/workflows/greet.ts": workflow },
    async answer() {
      if (isTakenOver) await store.claim({ agent: "", instance_id: run.run_id }, Number.MAX_SAFE_INTEGER);
      return { text: "Hello yourself." };
    },
  });
  let isTakenOver = false;
  let run = await node.startRun("greet", {});
  expect(await node.engine.awaitRun(run.run_id)).toMatchObject({ status: "completed" });
  const before = await store.read(key);
  isTakenOver = true;
  run = await node.startRun("greet", {});
  expect(await node.engine.awaitRun(run.run_id)).toMatchObject({
    status: "failed",
    error: { type: "lease_lost" },
  });
  const after = (await store.read(key)).slice(before.length);
  expect(JSON.stringify(after)).toContain("Hello.");
  expect(JSON.stringify(after)).not.toContain("Hello yourself.");
});

function toMethods(store: WorkspaceStore): WorkspaceStore {
  return {
    read: (key) => store.read(key),
    readPiece: (...args) => store.readPiece(...args),
    writePiece: (...args) => store.writePiece(...args),
    commit: (...args) => store.commit(...args),
    remove: (key) => store.remove(key),
  };
}

const writer = `{ name: "writer", allowWrite: true, allowShell: true }`;
const ownSandbox = `{ name: "writer", allowWrite: true, sandbox: (await import("kit/sandboxes/virtual")).virtual() }`;

test.each([
  ["an agent", "agents", `export default { kind: "kit.agent", describe: async () => (${writer}) };`],
  [
    "an agent with a virtual sandbox of its own",
    "agents",
    `export default { kind: "kit.agent", describe: async () => (${ownSandbox}) };`,
  ],
  [
    "a run's agent",
    "workflows",
    `const agent = { kind: "kit.agent", describe: async () => (${writer}) };
export default { kind: "kit.workflow", run: async ({ init }) => (await (await init(agent, { id: "pr-7" })).session()).prompt("Write.") };`,
  ],
])(
  "the workspace of %s is not saved any more once another node has its lease",
  async (name, kind, source) => {
    const schema = `workspaces_${name.replaceAll(/\W/g, "_")}`;
    const store = new PostgresSessionStore({ url: server.url, schema });
    onTestFinished(() => store.close());
    let lease = { agent: "writer", instance_id: "pr-7" };
    let pieces = 0;
    // In the middle of the save after the second call.
    class TakenOver extends PostgresSessionStore {
      override readonly workspaces: WorkspaceStore = {
        ...toMethods(store.workspaces),
        async writePiece(...args) {
          pieces += 1;
          if (pieces === 2) await store.claim(lease, Number.MAX_SAFE_INTEGER);
          await store.workspaces.writePiece(...args);
        },
      };
    }
    const answer = (call: number): ScriptedTurn =>
      call < 2
        ? { toolCalls: [{ name: "write", input: { path: `file${call}`, content: `of call ${call}` } }] }
        : { text: "Written." };
    const agents = { [`src/${kind}/writer.ts`]: source };
    const node = await openNode(schema, {
      agents,
      answer,
      store: new TakenOver({ url: server.url, schema }),
    });
    const key = { agent: "writer", instance_id: "pr-7", session: "default" };
    if (kind === "agents") await node.dispatch(key, "Write.");
    else lease = { agent: "", instance_id: (await node.startRun("writer", {})).run_id };
    await expect.poll(() => pieces, { timeout: 10_000 }).toBe(2);
    await node.close({ timeoutMs: 500 });
    const { version, manifest } = (await store.workspaces.read(key)) ?? {};
    expect({ version, files: manifest?.match(/file\d/g) }).toEqual({ version: 1, files: ["file0"] });
  },
);

test("the configuration names the database, or its error names what is missing", () => {
  const url = "postgres://kit@db.example/kit";
  expect(sharedEngineOf({}, { DATABASE_URL: url })).toBeUndefined();
  expect(sharedEngineOf({ engine: { kind: "postgres" } }, { DATABASE_URL: url })).toMatchObject({ url });
  expect(sharedEngineOf({ engine: { url } }, {})).toMatchObject({ url });
  expect(
    sharedEngineOf({ engine: { kind: "postgres" } }, { KIT_ENGINE_URL: "", DATABASE_URL: ` ${url}\n` }),
  ).toMatchObject({ url });
  expect(sharedEngineOf({ engine: url }, {})).toMatchObject({ url });
  const secret = "postgres://kit:s3cret-w0rd@db.example:5433/work";
  expect(describeEngine({ engine: secret }, {})).toBe(
    "Accepted work is shared through Postgres at db.example:5433/work, schema kit.",
  );
  expect(knownSecrets({}, { engine: secret })).toEqual(["s3cret-w0rd"]);
  expect(() => sharedEngineOf({ engine: { kind: "postgres" } }, {})).toThrow(
    "no address of a database is set",
  );
  expect(
    sharedEngineOf(
      { engine: { kind: "restate", url, restate: { ingress: "http://a:8080, http://b:8080" } } },
      {
        KIT_RESTATE_INGRESS: "http://c:8080",
        KIT_RESTATE_TOKEN: "secret",
        KIT_RESTATE_LISTEN: "127.0.0.1:9081",
      },
    )?.restate,
  ).toMatchObject({ ingress: ["http://a:8080", "http://b:8080"], listen: "127.0.0.1:9081", token: "secret" });
  expect(
    describeEngine({ engine: { kind: "restate", url, restate: { address: "http://nodes:9080" } } }, {}),
  ).toBe(
    "Accepted work is shared through Postgres at db.example/kit, schema kit. Restate calls the machines for it at http://nodes:9080.",
  );
  expect(() => sharedEngineOf({ engine: { kind: "restate" } }, {})).toThrow("engine.kind is restate");
  expect(() => sharedEngineOf({ engine: { url }, store: "sqlite" }, {})).toThrow(
    "other machines could not read",
  );
});
