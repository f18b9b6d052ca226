import { describe, expect, test } from "vitest";
import { refusalTests, remoteTests, useRemote } from "../remote/testing/remote.suite.ts";
import { daytonaSubject, hasDaytona } from "./testing/daytona-subject.ts";

describe.skipIf(!hasDaytona)("daytona, with the package of npm run test:vendors", () => {
  const bench = useRemote(daytonaSubject);

  remoteTests(bench);

  test("each call is one round trip, and a command takes three", async () => {
    const sandbox = await bench.open();
    await sandbox.writeFile("a.txt", "one");
    const executeRoute = "POST /toolbox/ID/process/execute";
    const calls: readonly (() => Promise<unknown>)[] = [
      () => sandbox.writeFile("a.txt", "two"),
      () => sandbox.readFile("a.txt"),
      () => sandbox.list(),
      () => sandbox.glob("**"),
    ];
    for (const call of calls) expect(await bench.requestsOf(call)).toEqual([executeRoute]);
    const run = () => sandbox.exec({ command: "cat a.txt" });
    await run();
    // The log is streamed over a WebSocket.
    expect(await bench.requestsOf(run)).toEqual([
      "POST /toolbox/ID/process/session/SHELL/exec",
      "GET /toolbox/ID/process/session/SHELL/command/c2",
    ]);
  });

  refusalTests(bench, [
    [429, "Too many requests", { code: "too_many_requests", meta: { reason: "busy" } }],
    [403, "Total CPU quota exceeded", { code: "forbidden", meta: { reason: "quota" } }],
    [
      401,
      "bad key",
      { code: "forbidden", meta: { reason: "key" }, hint: expect.stringContaining("DAYTONA_API_KEY") },
    ],
    [400, "no such snapshot", { code: "invalid_request", meta: { reason: "refused" } }],
    [500, "broken", { code: "unavailable", meta: { reason: "unreachable" } }],
  ]);

  test("network rules are passed on, and without rules a machine reaches no host", async () => {
    await (await bench.open()).list();
    expect(bench.fake.created.at(-1)).toMatchObject({ networkBlockAll: true, autoDeleteInterval: -1 });
    await (await bench.open({ network: ["registry.npmjs.org"] })).list();
    expect(bench.fake.created.at(-1)).toMatchObject({ domainAllowList: "registry.npmjs.org" });
  });
});
