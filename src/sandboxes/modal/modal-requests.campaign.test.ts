import { describe, expect, onTestFinished, test } from "vitest";
import { createTemporaryRepository } from "../../testing/temporary-repository.ts";
import { loadSdk } from "../remote/load-vendor-sdk.ts";
import { refusalTests, remoteTests, useRemote } from "../remote/testing/remote.suite.ts";
import { modal } from "./modal-sandbox.ts";
import { type FakeModal, startFakeModal } from "./testing/fake-modal.ts";
import { hasModal, modalSubject } from "./testing/modal-subject.ts";

describe.skipIf(!hasModal)("modal, with the package of npm run test:vendors", () => {
  let fake: FakeModal;
  const bench = useRemote({
    ...modalSubject,
    startFake: async () => {
      fake = await startFakeModal();
      return fake;
    },
  });

  remoteTests(bench);

  test("a call needs a start, an output and an exit request, and a command one more for its errors", async () => {
    // Other requests for a machine: a key that is valid for hours, the app, the image, and an empty list of machines.
    const factory = bench.factory();
    const owner = bench.nextOwner();
    const sandbox = await factory.open(owner);
    onTestFinished(() => sandbox.close());
    const call = ["TaskExecStart", "TaskExecStdioRead", "TaskExecWait"];
    const first = await bench.requestsOf(() => sandbox.writeFile("a.txt", "one"));
    const start = [
      "AuthTokenGet",
      "AppGetOrCreate",
      "SandboxListV2",
      "EnvironmentGetOrCreate",
      "ImageGetOrCreate",
    ];
    expect(first.slice(0, 6)).toEqual([...start, "SandboxCreateV2"]);
    expect(first.slice(6).toSorted()).toEqual([...call, ...call, ...call].toSorted());
    const next = await factory.open(bench.nextOwner());
    onTestFinished(() => next.close());
    expect((await bench.requestsOf(() => next.list())).slice(0, 2)).toEqual([
      "SandboxListV2",
      "SandboxCreateV2",
    ]);
    const calls: readonly (() => Promise<unknown>)[] = [
      () => sandbox.writeFile("a.txt", "two"),
      () => sandbox.readFile("a.txt"),
      () => sandbox.list(),
      () => sandbox.glob("**"),
    ];
    for (const each of calls) expect((await bench.requestsOf(each)).toSorted()).toEqual(call);
    const command = [call[0], call[1], ...call.slice(1)];
    expect(
      (await bench.requestsOf(() => sandbox.exec({ command: "cat a.txt", env: { A: "b" } }))).toSorted(),
    ).toEqual(command);
    const fed = await bench.requestsOf(() => sandbox.exec({ command: "cat", stdin: "in" }));
    expect(fed.toSorted()).toEqual(
      [command[0], "TaskExecStdinWrite", "TaskExecStdinWrite", ...command.slice(1)].toSorted(),
    );
  });

  test("if the answer to a start is lost, the request is repeated and the command runs once", async () => {
    const sandbox = await bench.open();
    await sandbox.writeFile("log.txt", "");
    fake.mishaps.dropStart = true;
    const requests = await bench.requestsOf(async () => {
      const run = sandbox.exec({ command: "echo ran >> log.txt; echo done" });
      expect(await run).toMatchObject({ exit_code: 0, stdout: "done\n" });
    });
    expect(requests.filter((name) => name === "TaskExecStart").length).toBeGreaterThan(1);
    expect(await sandbox.readFile("log.txt")).toBe("ran\n");
  });

  test("if the vendor starts a command twice, it runs once and its outcome is unknown", async () => {
    const sandbox = await bench.open();
    await sandbox.writeFile("log.txt", "");
    Object.assign(fake.mishaps, { dropStart: true, startAgain: true });
    onTestFinished(() => {
      fake.mishaps.startAgain = false;
    });
    const run = sandbox.exec({ command: "echo ran >> log.txt; echo done" });
    await expect(run).rejects.toMatchObject({ code: "unavailable", meta: { reason: "lost" } });
    expect(await sandbox.readFile("log.txt")).toBe("ran\n");
  });

  test("a connection that breaks while output is read is resumed", async () => {
    const sandbox = await bench.open();
    await sandbox.list();
    fake.mishaps.breakOutput = true;
    const command = "echo öne >> log.txt; cat log.txt; sleep 0.4; echo two; echo low >&2; exit 3";
    const { stdout, stderr, exit_code } = await sandbox.exec({ command });
    expect({ stdout, stderr, exit_code }).toEqual({ stdout: "öne\ntwo\n", stderr: "low\n", exit_code: 3 });
  });

  test("if the answer to a creation is lost, the one created machine is found", async () => {
    fake.mishaps.dropCreate = true;
    const machines = fake.machines.size;
    const sandbox = await bench.open();
    await sandbox.writeFile("a.txt", "kept");
    expect(fake.machines.size).toBe(machines + 1);
  });

  test("names that are not valid tags are found again and listed unchanged", async () => {
    const owner = { ...bench.nextOwner(), instance_id: "acme/shop#12 über ".repeat(5).trim() };
    await (await bench.open({}, owner)).writeFile("a.txt", "kept");
    const machines = await bench.factory().machines?.(bench.root);
    const listed = (await machines?.list())?.filter(({ instance_id }) => instance_id === owner.instance_id);
    expect(listed).toMatchObject([{ sandbox: "modal", state: "running", agent: "tester", in_use: true }]);
    await bench.factory().remove?.(owner);
    expect((await machines?.list())?.some(({ instance_id }) => instance_id === owner.instance_id)).toBe(
      false,
    );
  });

  test("arguments longer than the vendor's limit are sent before standard input", async () => {
    const sandbox = await bench.open();
    const text = "ä".repeat(30_000);
    await sandbox.writeFile("a.txt", text);
    expect(await sandbox.readFile("a.txt")).toBe(text);
    const command = ["sh", "-c", 'printf %s "$1" | wc -c; cat', "sh", "x".repeat(80_000)];
    expect((await sandbox.exec({ command, stdin: "in" })).stdout).toBe("80000\nin");
    expect((await sandbox.exec({ command })).stdout).toBe("80000\n");
  });

  refusalTests(bench, [
    [8, "Rate limit exceeded", { code: "too_many_requests", meta: { reason: "busy" } }],
    [
      8,
      "Workspace has reached its concurrent sandbox limit",
      { code: "forbidden", meta: { reason: "quota" } },
    ],
    [7, "Workspace billing limit reached", { code: "forbidden", meta: { reason: "quota" } }],
    [
      16,
      "bad",
      { code: "forbidden", meta: { reason: "key" }, hint: expect.stringContaining("MODAL_TOKEN_SECRET") },
    ],
    [3, "no such region", { code: "invalid_request", meta: { reason: "refused" } }],
    [5, "Environment 'x' not found", { code: "invalid_request", meta: { reason: "refused" } }],
    [14, "broken", { code: "unavailable", meta: { reason: "unreachable" } }],
  ]);

  test("a refused key and a failed image build are errors with a hint", async () => {
    const open = (options: Parameters<typeof modal>[0]) =>
      modal({ tokenId: "ak-test", tokenSecret: "as-test", apiUrl: fake.url, ...options }).open(
        bench.nextOwner(),
      );
    await expect((await open({ tokenSecret: "as-wrong" })).list()).rejects.toMatchObject({
      code: "forbidden",
      hint: expect.stringContaining("MODAL_TOKEN_ID"),
    });
    await expect((await open({ image: "missing" })).list()).rejects.toMatchObject({
      code: "invalid_request",
      hint: expect.stringContaining("no such image"),
    });
  });

  test("network rules and limits are passed on, and without rules a machine reaches no host", async () => {
    await (await bench.open({ idleMs: 60_500 })).list();
    expect(bench.fake.created.at(-1)).toEqual({
      timeoutSecs: 86_400,
      idleTimeoutSecs: 181,
      networkAccess: { type: 2, domains: [] },
    });
    await (await bench.open({ network: ["registry.npmjs.org"] })).list();
    const some = { networkAccess: { type: 3, domains: ["registry.npmjs.org"] } };
    expect(bench.fake.created.at(-1)).toMatchObject(some);
    await (await bench.open({ network: "any" })).list();
    expect(bench.fake.created.at(-1)).toMatchObject({ networkAccess: { type: 1 } });
  });
});

test("another package of the same name is refused, and the hint names the right version", async () => {
  await using folder = await createTemporaryRepository({
    "package.json": "{}",
    "node_modules/modal/package.json": '{ "name": "modal", "version": "1.2.0", "main": "index.js" }',
    "node_modules/modal/index.js": "module.exports = function modal() {};",
  });
  const loaded = loadSdk("modal", folder.root, { version: "0.11.1", exports: "ModalClient" });
  await expect(loaded).rejects.toMatchObject({
    code: "unavailable",
    message: expect.stringContaining("does not export ModalClient"),
    hint: "Run: npm install modal@0.11.1",
  });
});
