import { expect, onTestFinished, test } from "vitest";
import { refusalTests, remoteTests, useRemote } from "../remote/testing/remote.suite.ts";
import { runloopSubject } from "./testing/runloop-subject.ts";

const bench = useRemote(runloopSubject);

remoteTests(bench);

test("each call is one round trip, as is a command that ends within a second", async () => {
  const sandbox = await bench.open();
  const executeRoute = "POST /v1/devboxes/ID/execute";
  const first = await bench.requestsOf(() => sandbox.writeFile("a.txt", "one"));
  // The driver lists machines with these labels in each state, page by page, and finds the network policy.
  const reads = /^GET \/v1\/devboxes$|network-policies$/;
  expect(first.filter((line) => !reads.test(line))).toEqual([
    "POST /v1/devboxes",
    "POST /v1/devboxes/ID/wait_for_status",
    executeRoute,
    executeRoute,
    executeRoute,
  ]);
  const calls: readonly (() => Promise<unknown>)[] = [
    () => sandbox.writeFile("a.txt", "two"),
    () => sandbox.readFile("a.txt"),
    () => sandbox.list(),
    () => sandbox.glob("**"),
    () => sandbox.exec({ command: "cat a.txt", cwd: "." }),
  ];
  for (const call of calls) expect(await bench.requestsOf(call)).toEqual([executeRoute]);
  const upload = "POST /v1/devboxes/ID/upload_file";
  const fed = () => sandbox.exec({ command: "cat", stdin: "in", env: { A: "b" } });
  expect(await bench.requestsOf(fed)).toEqual([upload, upload, executeRoute]);
});

test("the output of a longer command is streamed, and a broken stream is resumed", async () => {
  const sandbox = await bench.open();
  await sandbox.list();
  const received: string[] = [];
  const cut = setTimeout(() => {
    bench.fake.trouble.cutNext = true;
  }, 300);
  onTestFinished(() => clearTimeout(cut));
  const requests = await bench.requestsOf(async () => {
    const { stdout, stderr, exit_code } = await sandbox.exec({
      command: "echo öne; echo low >&2; sleep 1.3; echo two; exit 3",
      onOutput: ({ text }) => received.push(text),
    });
    expect({ stdout, stderr, exit_code }).toEqual({ stdout: "öne\ntwo\n", stderr: "low\n", exit_code: 3 });
  });
  expect([...received].sort()).toEqual(["low\n", "two\n", "öne\n"]);
  expect(requests.filter((line) => line.endsWith("/execute"))).toHaveLength(1);
  expect(requests.filter((line) => line.endsWith("_updates")).length).toBeGreaterThan(2);
});

test("output with more lines than the vendor returns at once is read completely", async () => {
  const sandbox = await bench.open();
  const { stdout } = await sandbox.exec({ command: "seq 1 120000" });
  expect(stdout.split("\n")).toHaveLength(120_001);
});

refusalTests(bench, [
  [429, "Too many requests", { code: "too_many_requests", meta: { reason: "busy", retry_after_s: 7 } }],
  [429, "Concurrent devbox limit reached", { code: "forbidden", meta: { reason: "quota" } }],
  [
    401,
    "bad key",
    { code: "forbidden", meta: { reason: "key" }, hint: expect.stringContaining("RUNLOOP_API_KEY") },
  ],
  [400, "no such blueprint", { code: "invalid_request", meta: { reason: "refused" } }],
  [500, "broken", { code: "unavailable", meta: { reason: "unreachable" } }],
]);

test("network rules become one account policy per list of hosts, and without rules a machine reaches no host", async () => {
  const policyOf = async (network?: readonly string[] | "any"): Promise<unknown> => {
    await (await bench.open(network === undefined ? {} : { network })).list();
    const parameters = bench.fake.created.at(-1)?.launch_parameters;
    expect(parameters).toMatchObject({ lifecycle: { after_idle: { on_idle: "suspend" } } });
    return typeof parameters === "object" && parameters !== null && "network_policy_id" in parameters
      ? parameters.network_policy_id
      : undefined;
  };
  const closed = await policyOf();
  const some = await policyOf(["b.example", "a.example"]);
  expect(closed).toBeDefined();
  expect(some).not.toBe(closed);
  expect(await policyOf(["a.example", "b.example"])).toBe(some);
  expect(await policyOf("any")).toBeUndefined();
});
