import { expect, test } from "vitest";
import { loadSdk } from "../remote/load-vendor-sdk.ts";
import { refusalTests, remoteTests, useRemote } from "../remote/testing/remote.suite.ts";
import { e2bSubject } from "./testing/e2b-subject.ts";

const bench = useRemote(e2bSubject);

remoteTests(bench);

test("opening a sandbox sends no request; the first call creates the machine, and each call is one round trip", async () => {
  const owner = bench.nextOwner();
  expect(await bench.requestsOf(() => bench.open({}, owner))).toEqual([]);
  const sandbox = await bench.open({}, owner);
  const first = await bench.requestsOf(() => sandbox.writeFile("a.txt", "one"));
  const start = "POST /process.Process/Start";
  expect(first).toEqual(["GET /v2/sandboxes", "POST /v2/sandboxes", start, start, start]);
  const calls: readonly (() => Promise<unknown>)[] = [
    () => sandbox.writeFile("a.txt", "two"),
    () => sandbox.readFile("a.txt"),
    () => sandbox.stat("a.txt"),
    () => sandbox.list(),
    () => sandbox.glob("**"),
    () => sandbox.exec({ command: "cat a.txt", env: { A: "b" }, cwd: "." }),
    () => sandbox.exec({ command: ["cat", "a.txt"], access: { write: false } }),
  ];
  for (const call of calls) expect(await bench.requestsOf(call)).toEqual([start]);
  expect(await bench.requestsOf(() => sandbox.grep({ pattern: "two" }))).toEqual([start, start]);
  const edit = () => sandbox.edit("a.txt", { old: "two", new: "2" });
  expect(await bench.requestsOf(edit)).toEqual([start, start]);
  const input = ["POST /process.Process/SendInput", "POST /process.Process/CloseStdin"];
  expect(await bench.requestsOf(() => sandbox.exec({ command: "cat", stdin: "in" }))).toEqual([
    start,
    ...input,
  ]);
});

refusalTests(bench, [
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
]);

test("network rules are passed on, and without rules a machine reaches no host", async () => {
  await (await bench.open()).list();
  expect(bench.fake.created.at(-1)).toMatchObject({ allow_internet_access: false, autoPause: true });
  await (await bench.open({ network: ["registry.npmjs.org"] })).list();
  expect(bench.fake.created.at(-1)).toMatchObject({
    network: { allowOut: ["registry.npmjs.org"], denyOut: ["0.0.0.0/0"] },
  });
  await (await bench.open({ network: "any" })).list();
  expect(bench.fake.created.at(-1)).not.toHaveProperty("allow_internet_access");
});

test("the error for a missing package names the command that installs it", async () => {
  await expect(loadSdk("kit-no-such-package", bench.root)).rejects.toMatchObject({
    code: "unavailable",
    hint: "Run: npm install kit-no-such-package",
  });
});
