import { existsSync, mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { setTimeout } from "node:timers/promises";
import { expect, onTestFinished, test } from "vitest";
import { agentStream } from "../../protocol/session-name.ts";
import type { SandboxFactory } from "../../sandboxes/contract.ts";
import { virtual } from "../../sandboxes/virtual/virtual-sandbox.ts";
import { SqliteSessionStore } from "../../stores/sqlite/sqlite-store.ts";
import { createScriptedModel } from "../../testing/scripted-model.ts";
import { createTemporaryRepository } from "../../testing/temporary-repository.ts";
import { createTestService, type TestService } from "../../testing/test-service.ts";
import { pruneHourly } from "./housekeeping.ts";

const day = 24 * 3_600_000;
const month = { olderThanMs: 30 * day };
const keyOf = (instance_id: string) => ({ agent: "helper", instance_id, session: "default" });

interface Opened {
  readonly service: TestService;
  readonly workspaces: () => readonly string[];
  /** Has the removal of an instance's workspace fail. */
  breakWorkspaces(instance: string): void;
  /** Makes what an instance has said so many days older. */
  age(instance: string, days: number): void;
}

async function open(): Promise<Opened> {
  const repository = await createTemporaryRepository({
    "src/agents/helper.ts": `export default { kind: "kit.agent", describe: async () => ({ allowWrite: true, tools: [sign] }) };
const sign = { name: "sign", description: "Signs.", input: { type: "object", properties: {} }, needsApproval: true, execute: () => "signed" };\n`,
    "src/workflows/signs.ts": `import helper from "../agents/helper.ts";
export async function run(ctx) {
  await (await ctx.init(helper, { id: "of-run", name: "helper" })).session().prompt("Sign.");
}
`,
    "src/workflows/waits.ts": `import helper from "../agents/helper.ts";
export async function run(ctx) {
  await (await ctx.init(helper, { id: "of-run", name: "helper" })).session().prompt("Begin.");
  await ctx.waitFor("go");
}
`,
  });
  const folder = mkdtempSync(join(tmpdir(), "kit-retention-"));
  const file = join(folder, "sessions.db");
  const store = new SqliteSessionStore({ file });
  const model = createScriptedModel(({ prompt }) => {
    const users = prompt.filter(({ role }) => role === "user").length;
    if (prompt.at(-1)?.role === "user" && users === 1 && JSON.stringify(prompt).includes("Write"))
      return { toolCalls: [{ name: "write", input: { path: "a.txt", content: "a" } }] };
    if (prompt.at(-1)?.role === "user" && JSON.stringify(prompt.at(-1)).includes("Sign"))
      return { toolCalls: [{ name: "sign", input: {} }] };
    return JSON.stringify(prompt).includes("Long")
      ? { text: "late", delayMs: 600_000 }
      : { text: String(users) };
  });
  const own = virtual({ folder: join(folder, "workspaces") });
  const broken = new Set<string>();
  const sandbox: SandboxFactory = {
    ...own,
    async remove(owner) {
      // Root may remove every folder, so the test makes the refusal itself.
      if (broken.has(owner.instance_id))
        throw Object.assign(new Error("EACCES: /secret/path"), { code: "EACCES" });
      await own.remove?.(owner);
    },
  };
  const service = await createTestService({ root: repository.root, model, store, sandbox }, { restMs: 20 });
  onTestFinished(async () => {
    await service.close();
    store.close();
    rmSync(folder, { recursive: true });
    await repository[Symbol.asyncDispose]();
  });
  return {
    service,
    breakWorkspaces: (instance) => void broken.add(instance),
    workspaces: () => (existsSync(join(folder, "workspaces")) ? readdirSync(join(folder, "workspaces")) : []),
    age(instance, days) {
      const database = new DatabaseSync(file);
      database
        .prepare(
          "UPDATE entries SET at = at - ? WHERE id >> 24 IN (SELECT id FROM sessions WHERE instance_id = ?)",
        )
        .run(days * day, instance);
      database.close();
    },
  };
}

const namesOf = (sessions: readonly { readonly instance_id: string }[]): readonly string[] =>
  sessions.map(({ instance_id }) => instance_id);

/** Prunes until all of these instances are removed: what has just ended rests, and is a millisecond old, a moment later. */
async function expectRemoval(
  instances: readonly string[],
  prune: () => Promise<{ readonly removed: readonly { readonly instance_id: string }[] }>,
): Promise<void> {
  const removed: string[] = [];
  await expect
    .poll(async () => {
      removed.push(...namesOf((await prune()).removed));
      return removed.toSorted();
    })
    .toEqual(instances.toSorted());
}

test("an old session is removed with its workspace and events", async () => {
  const { service, age, workspaces } = await open();
  await service.prompt(keyOf("old"), { message: "Write." });
  await service.prompt(keyOf("new"), { message: "Hello." });
  await service.prompt(keyOf("old"), { message: "Again." });
  age("old", 31);
  age("new", 29);
  expect(workspaces().length).toBeGreaterThan(0);
  const dry = await service.sessions.prune({ ...month, dryRun: true });
  expect(namesOf(dry.removed)).toEqual(["old"]);
  expect(namesOf((await service.sessions.list({ limit: 10 })).sessions)).toEqual(["old", "new"]);

  expect(await service.sessions.prune(month)).toEqual(dry);
  expect(workspaces()).toEqual([]);
  expect(await service.engine.events.last(agentStream("helper", "old"))).toBe(0);
  expect(await service.engine.events.last(agentStream("helper", "new"))).toBeGreaterThan(0);
  await expect(service.history(keyOf("old"))).rejects.toMatchObject({ code: "not_found" });
  expect(namesOf((await service.sessions.list({ limit: 10 })).sessions)).toEqual(["new"]);
  expect((await service.prompt(keyOf("old"), { message: "Hello." })).text).toBe("1");
});

test("an old instance stays while it is running, waiting, or has a connected client", async () => {
  const { service, age } = await open();
  const instances = ["works", "line", "read", "socket"];
  for (const instance of instances) await service.prompt(keyOf(instance), { message: "Hello." });
  const { run_id } = await service.startRun("waits", {});
  await expect.poll(async () => (await service.engine.getRun(run_id))?.status).toBe("waiting");
  const stop = new AbortController();
  // The first keeps its session busy: the second waits in line.
  const works = service.prompt(keyOf("works"), { message: "Long." }, { signal: stop.signal });
  const line = service.dispatch(keyOf("line"), "Long.");
  const stream = service.events(keyOf("read"), { signal: stop.signal })[Symbol.asyncIterator]();
  await stream.next();
  const detach = service.sessions.attach(keyOf("socket"));
  const { dispatch_id } = await line;
  await expect.poll(async () => (await service.engine.getDispatch(dispatch_id))?.status).toBe("running");
  await setTimeout(50);
  for (const instance of [...instances, "of-run"]) age(instance, 31);
  // The run has begun before its session was touched.
  age("of-run", -31);
  const { removed, in_use } = await service.sessions.prune({ olderThanMs: 1 });
  expect([namesOf(removed), in_use]).toEqual([[], 5]);

  stop.abort();
  await works.catch(() => undefined);
  await stream.return?.(undefined);
  await service.engine.cancelDispatch(dispatch_id);
  await service.engine.cancelRun(run_id);
  await service.engine.awaitRun(run_id);
  await service.engine.awaitDispatch(dispatch_id);
  detach();
  await expectRemoval([...instances, "of-run"], () => service.sessions.prune({ olderThanMs: 1 }));
});

test("a session that is used between the check and its removal stays", async () => {
  const { service, age } = await open();
  await service.prompt(keyOf("a"), { message: "Hello." });
  age("a", 31);
  const touch = async (): Promise<boolean> => {
    await service.prompt(keyOf("a"), { message: "Still here." });
    return true;
  };
  expect(await service.sessions.prune({ ...month, permit: touch })).toMatchObject({ removed: [], in_use: 1 });
  expect(await service.history(keyOf("a"))).toHaveLength(4);
});

test("sessions are checked page by page, and those that the sender is not permitted to delete are skipped", async () => {
  const { service, age } = await open();
  for (const instance of ["a", "b", "c"]) {
    await service.prompt(keyOf(instance), { message: "Hello." });
    age(instance, 31);
  }
  const permit = async ({ instance_id }: { instance_id: string }): Promise<boolean> => instance_id !== "b";
  const first = await service.sessions.prune({ ...month, limit: 2, permit });
  expect(namesOf(first.removed)).toEqual(["a"]);
  const cursor = first.next_cursor ?? "";
  expect(namesOf((await service.sessions.prune({ ...month, limit: 2, permit, cursor })).removed)).toEqual([
    "c",
  ]);
  expect(namesOf((await service.sessions.list({ limit: 10 })).sessions)).toEqual(["b"]);
});

test("a server logs one line about removed sessions, and none if nothing was removed", async () => {
  const { service, age } = await open();
  for (const instance of ["a", "b"]) {
    await service.prompt(keyOf(instance), { message: "Hello." });
    age(instance, 31);
  }
  const messages: string[] = [];
  const errors: unknown[] = [];
  const end = pruneHourly(service.sessions, {
    ...month,
    everyMs: 5,
    onRemoved: (text) => messages.push(text),
    onError: (error) => errors.push(error),
  });
  await expect.poll(() => messages.length).toBeGreaterThan(0);
  await setTimeout(30);
  await end();
  expect([messages, errors]).toEqual([["Removed 2 sessions of 2 instances, untouched for 30 days."], []]);
});

test("a session with a call that waits for approval is never removed, resting or not, and continues after the decision", async () => {
  const { service, age } = await open();
  const { dispatch_id } = await service.dispatch(keyOf("dispatched"), "Sign.");
  const withKey = service.prompt(keyOf("keyed"), { message: "Sign." }, { idempotencyKey: "k" });
  const plain = service.prompt(keyOf("plain"), { message: "Sign." });
  const { run_id } = await service.startRun("signs", {});
  await expect.poll(async () => (await service.approvals.list()).length).toBe(4);
  const instances = ["dispatched", "keyed", "plain", "of-run"];
  for (const instance of instances) age(instance, 400);
  const prune = () => service.sessions.prune({ olderThanMs: 1 });
  expect(await prune()).toMatchObject({ removed: [], in_use: 4, failed: [] });
  // Then every session that may rest does: none of its work runs.
  await setTimeout(150);
  expect(await prune()).toMatchObject({ removed: [], in_use: 4 });
  for (const { approval_id } of await service.approvals.list())
    await service.approvals.decide(approval_id, { approved: true });
  await Promise.all([
    withKey,
    plain,
    service.engine.awaitDispatch(dispatch_id),
    service.engine.awaitRun(run_id),
  ]);
  for (const instance of ["dispatched", "keyed", "plain"])
    expect(JSON.stringify(await service.history(keyOf(instance)))).toContain("signed");
  await expectRemoval(instances, prune);
});

test("a session that cannot be removed is reported with its reason, and the others are removed", async () => {
  const { service, age, breakWorkspaces } = await open();
  for (const instance of ["a", "b"]) {
    await service.prompt(keyOf(instance), { message: "Write." });
    age(instance, 31);
  }
  breakWorkspaces("a");
  const { removed, failed } = await service.sessions.prune(month);
  expect(namesOf(removed)).toEqual(["b"]);
  expect(failed).toEqual([
    {
      ...keyOf("a"),
      error: {
        type: "internal_error",
        message: expect.stringContaining("its workspace could not be removed (EACCES)"),
      },
    },
  ]);
});
