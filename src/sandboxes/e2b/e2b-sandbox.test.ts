import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, expect, onTestFinished, test } from "vitest";
import type { Sandbox } from "../contract.ts";
import { sandboxCases } from "../contract-cases.ts";
import type { E2bOptions } from "./e2b-options.ts";
import { e2b } from "./e2b-sandbox.ts";
import { startFakeE2b } from "./testing/fake-e2b.ts";

const fake = await startFakeE2b();
const root = await mkdtemp(join(tmpdir(), "kit-e2b-"));
afterAll(async () => {
  await fake.close();
  await rm(root, { recursive: true });
});

const connection = { apiKey: "e2b_test", apiUrl: fake.url, sandboxUrl: fake.url };
let count = 0;

/** The owner of a new instance. */
function nextOwner() {
  count += 1;
  return { agent: "tester", session: "default", project_root: root, instance_id: String(count) };
}

async function open(options: E2bOptions = {}, owner = nextOwner()): Promise<Sandbox> {
  const sandbox = await e2b({ ...connection, ...options }).open(owner);
  onTestFinished(() => sandbox.close());
  return sandbox;
}

/** What the vendor was asked for while something was done. */
async function requestsOf(work: () => Promise<unknown>): Promise<readonly string[]> {
  const before = fake.requests.length;
  await work();
  return fake.requests.slice(before).map((line) => line.replace(/fake\w+/, "ID"));
}

// All of them run in the campaign, and against the vendor itself.
const slice = new Set([
  "a text and bytes come back as they went in, in folders that a write makes",
  "what Git ignores is left out, unless it is named",
  "a program of the workspace does not stand in for one of the system",
  "a sandbox that says of a wall keeps a command to its access",
  "what is left in the background ends with its command",
]);
for (const { name, run } of sandboxCases({ create: () => open() })) if (slice.has(name)) test(name, run);

test("opening a sandbox asks the vendor nothing; the first call makes the machine, and each call is one round trip", async () => {
  let sandbox: Sandbox | undefined;
  const opening = await requestsOf(async () => {
    sandbox = await open();
  });
  expect(opening).toEqual([]);
  const first = await requestsOf(async () => sandbox?.writeFile("a.txt", "one"));
  expect(first.filter((line) => !line.includes("process"))).toEqual([
    "GET /v2/sandboxes",
    "POST /v2/sandboxes",
  ]);
  const start = "POST /process.Process/Start";
  const calls: readonly (() => Promise<unknown> | undefined)[] = [
    () => sandbox?.writeFile("a.txt", "two"),
    () => sandbox?.readFile("a.txt"),
    () => sandbox?.stat("a.txt"),
    () => sandbox?.list(),
    () => sandbox?.glob("**"),
    () => sandbox?.exec({ command: "cat a.txt", env: { A: "b" }, cwd: "." }),
    () => sandbox?.exec({ command: ["cat", "a.txt"], access: { write: false } }),
  ];
  for (const call of calls) expect(await requestsOf(async () => await call())).toEqual([start]);
  const input = ["POST /process.Process/SendInput", "POST /process.Process/CloseStdin"];
  expect(await requestsOf(async () => await sandbox?.grep({ pattern: "two" }))).toEqual([
    start,
    start,
    ...input,
  ]);
  expect(await requestsOf(async () => await sandbox?.edit("a.txt", { old: "two", new: "2" }))).toEqual([
    start,
    start,
  ]);
});

test("a machine is paused when nothing happens, comes back by its id after a restart, and goes with its session", async () => {
  const owner = nextOwner();
  const first = await open({ idleMs: 300 }, owner);
  await first.writeFile("a.txt", "kept");
  const [id = "", machine] = [...fake.machines].at(-1) ?? [];
  expect(machine?.labels).toMatchObject({
    kit_agent: "tester",
    kit_instance: owner.instance_id,
    kit_session: "default",
  });
  await expect.poll(() => machine?.state).toBe("paused");
  const again = await requestsOf(async () => expect(await first.readFile("a.txt")).toBe("kept"));
  expect(again[0]).toBe("POST /v2/sandboxes/ID/connect");
  await first.close();
  expect(machine?.state).toBe("paused");
  const second = await open({}, owner);
  expect(await second.readFile("a.txt")).toBe("kept");
  await second.close();
  await e2b(connection).remove?.(owner);
  expect(fake.machines.has(id)).toBe(false);
});

test("a machine that was made and never noted is found by its labels", async () => {
  const owner = nextOwner();
  await (await open({}, owner)).writeFile("a.txt", "kept");
  const machines = fake.machines.size;
  await rm(join(root, ".kit/machines", await recordOf(owner.instance_id)));
  expect(await (await open({}, owner)).readFile("a.txt")).toBe("kept");
  expect(fake.machines.size).toBe(machines);
});

async function recordOf(instance: string): Promise<string> {
  const { readdir } = await import("node:fs/promises");
  const names = await readdir(join(root, ".kit/machines"));
  return names.find((name) => name.startsWith(`e2b-tester-${instance}-default-`)) ?? "";
}

test("a machine that is gone is told once, and the next call has a new one", async () => {
  const sandbox = await open();
  await sandbox.writeFile("a.txt", "lost");
  const [id = "", machine] = [...fake.machines].at(-1) ?? [];
  machine?.destroy();
  (fake.machines as Map<string, unknown>).delete(id);
  const gone = {
    code: "unavailable",
    meta: { reason: "gone" },
    message: expect.stringContaining("with the files"),
  };
  await expect(sandbox.exists("a.txt")).rejects.toMatchObject(gone);
  expect(await sandbox.exists("a.txt")).toBe(false);
});

test("a connection that is lost in mid-command is an unknown outcome, and what only reads is asked again", async () => {
  const sandbox = await open();
  await sandbox.writeFile("a.txt", "kept");
  fake.trouble.cutNext = true;
  const cut = sandbox.exec({ command: "echo begun >> log.txt; sleep 1; echo ended >> log.txt" });
  await expect(cut).rejects.toMatchObject({
    code: "unavailable",
    meta: { reason: "lost" },
    message: expect.stringContaining("the outcome is unknown"),
  });
  fake.trouble.cutNext = true;
  expect(await sandbox.readFile("a.txt")).toBe("kept");
  expect((await sandbox.readFile("log.txt")).match(/begun/g)).toHaveLength(1);
});

test.each([
  [429, "Rate limit exceeded", { code: "too_many_requests", meta: { reason: "busy" } }],
  [
    429,
    "You have reached the maximum number of concurrent sandboxes",
    { code: "forbidden", meta: { reason: "quota" } },
  ],
  [
    401,
    "bad key",
    { code: "forbidden", meta: { reason: "key" }, hint: expect.stringContaining("E2B_API_KEY") },
  ],
  [400, "no such template", { code: "invalid_request", meta: { reason: "refused" } }],
  [500, "broken", { code: "unavailable", meta: { reason: "unreachable" } }],
  [503, "busy", { code: "unavailable", meta: { reason: "unreachable" } }],
])("the vendor's %i (%s) is kit's", async (status, message, expected) => {
  fake.trouble.refuse = { status, message };
  onTestFinished(() => {
    fake.trouble.refuse = undefined;
  });
  const sandbox = await open();
  await expect(sandbox.list()).rejects.toMatchObject(expected);
});

test("network rules are passed on, and a machine reaches nothing without them", async () => {
  await (await open()).list();
  expect(fake.created.at(-1)).toMatchObject({ allow_internet_access: false, autoPause: true });
  await (await open({ network: ["registry.npmjs.org"] })).list();
  expect(fake.created.at(-1)).toMatchObject({
    network: { allowOut: ["registry.npmjs.org"], denyOut: ["0.0.0.0/0"] },
  });
  await (await open({ network: "any" })).list();
  expect(fake.created.at(-1)).not.toHaveProperty("allow_internet_access");
});

test("a package that is not installed is told with the command that installs it", async () => {
  const { loadSdk } = await import("../remote/load-sdk.ts");
  await expect(loadSdk("kit-no-such-package", root)).rejects.toMatchObject({
    code: "unavailable",
    hint: "Run: npm install kit-no-such-package",
  });
});
