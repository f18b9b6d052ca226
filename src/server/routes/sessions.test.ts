import { afterAll, beforeAll, expect, test } from "vitest";
import { serveForTest, serveForTests } from "../testing/serve-for-tests.ts";

const served = serveForTests({
  authorize: ({ action, instance }) => !(instance === "secret" && action === "agent.read"),
});
beforeAll(async () => {
  for (const instance of ["a", "secret", "b"])
    await served.send(`/agents/echo/${instance}`, { body: { message: "hello" } });
});
afterAll(() => expect(served.errors).toEqual([]));

test("sessions are listed in pages with the time of their last use, without those that the sender may not read", async () => {
  const first = (await served.send("/sessions?limit=2")).body;
  expect(first.sessions).toEqual([
    {
      agent: "echo",
      instance_id: "a",
      session: "default",
      created_at: expect.any(String),
      touched_at: expect.any(String),
      position: expect.any(Number),
      status: "idle",
      state: "idle",
      title: "hello",
      cost: null,
      tokens: 5,
    },
  ]);
  const { body } = await served.send(`/sessions?limit=2&cursor=${first.next_cursor}`);
  expect([body.sessions.length, body.sessions[0].instance_id, body.next_cursor]).toEqual([1, "b", undefined]);
});

test("a page names no next page in which the sender may see nothing", async () => {
  const { body } = await served.send("/sessions?agent=echo&instance_id=secret&limit=1");
  expect(body).toEqual({ sessions: [] });
  const first = (await served.send("/sessions?limit=1")).body;
  const second = (await served.send(`/sessions?limit=1&cursor=${first.next_cursor}`)).body;
  expect([first, second].map(({ sessions }) => sessions[0].instance_id)).toEqual(["a", "b"]);
  expect(second.next_cursor).toBeUndefined();
});

test("sessions are found by words, status and time, the last used first, and counted without an authorize", async () => {
  const open = await serveForTest();
  for (const [instance, message] of [
    ["a", "Refund order 7"],
    ["b", "Write a poem"],
  ] as const)
    await open.send(`/agents/echo/${instance}`, { body: { message } });
  const { body: held } = await open.send("/agents/echo/c/dispatch", { body: { input: "hold" } });
  const found = async (query: string): Promise<unknown> => {
    const { body } = await open.send(`/sessions?count=true&${query}`);
    return [body.sessions.map(({ instance_id }: { instance_id: string }) => instance_id), body.total];
  };
  await expect.poll(async () => await found("status=working")).toEqual([["c"], 1]);
  expect(await found("search=REFUND")).toEqual([["a"], 1]);
  expect(await found("status=idle&order=newest")).toEqual([["b", "a"], 2]);
  expect(await found("status=waiting")).toEqual([[], 0]);
  expect(await found("since=2026-01-01&limit=1&parents_only=true")).toEqual([["a"], 3]);
  expect(await found("until=2026-01-01T00:00:00%2B01:00")).toEqual([[], 0]);
  await open.service.engine.cancelDispatch(held.dispatch_id);
  for (const wrong of ["count=1", "since=yesterday", "order=best", "status=done", "order=recent&cursor=7"])
    expect([wrong, (await open.send(`/sessions?${wrong}`)).status]).toEqual([wrong, 400]);
  // With an authorize, a total would tell about sessions that the sender may not read.
  expect((await served.send("/sessions?count=true")).body.total).toBeUndefined();
});

test("a failing, an aborted and a waiting conversation say so in the list, and the next message mends it", async () => {
  const open = await serveForTest({ engine: { attempts: 1 } });
  const list = async (query = ""): Promise<Readonly<Record<string, string>>> => {
    const { sessions } = (await open.send(`/sessions?${query}`)).body;
    return Object.fromEntries(
      sessions.map(({ instance_id, status }: Record<string, string>) => [instance_id, status]),
    );
  };
  await open.send("/agents/echo/failing", { body: { message: "fail for good" } });
  await open.send("/agents/echo/dispatched/dispatch", { body: { input: "fail" } });
  await open.send("/agents/careful/asking/dispatch", { body: { input: "pay 5" } });
  await open.send("/agents/echo/aborted/dispatch", { body: { input: "hold" } });
  await open.echo.held(1);
  const before = { failing: "failed", dispatched: "failed", asking: "waiting", aborted: "working" };
  await expect.poll(() => list()).toEqual(before);
  await open.send("/agents/echo/aborted/abort", { method: "POST" });
  await expect.poll(() => list()).toEqual({ ...before, aborted: "stopped" });
  expect(await list("status=failed")).toEqual({ failing: "failed", dispatched: "failed" });
  expect(await list("status=stopped")).toEqual({ aborted: "stopped" });
  expect(await list("status=waiting")).toEqual({ asking: "waiting" });
  expect(await list("status=working")).toEqual({});
  expect(await list("status=idle")).toEqual({});
  const { sessions } = (await open.send("/sessions?instance_id=failing")).body;
  expect(sessions).toMatchObject([
    { title: "fail for good", error: { type: "context_overflow", message: "It is too long." } },
  ]);
  await open.send("/agents/echo/failing", { body: { message: "hello" } });
  expect(await list("instance_id=failing")).toEqual({ failing: "idle" });
});

test("a recently used session is not pruned, and an invalid age is refused", async () => {
  const prune = (body: unknown) => served.send("/sessions/prune", { body });
  expect((await prune({ older_than_seconds: 3_600 })).body).toEqual({ removed: [], in_use: 0, failed: [] });
  const wrong = [
    {},
    { older_than_seconds: "30d" },
    { older_than_seconds: 3_599 },
    { older_than_seconds: 1e12 },
  ];
  for (const body of [...wrong, { older_than_seconds: 3_600, dryrun: true }])
    expect([body, (await prune(body)).status]).toEqual([body, 400]);
  expect((await prune({ older_than_seconds: 3_600, cursor: "none" })).status).toBe(400);
});
