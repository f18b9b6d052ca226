import { afterAll, expect, test } from "vitest";
import type { KitEvent } from "../../protocol/event.ts";
import { readEventStream } from "../testing/read-event-stream.ts";
import { serveForTest, serveForTests } from "../testing/serve-for-tests.ts";

const served = serveForTests();
afterAll(() => expect(served.errors).toEqual([]));

const dispatch = (path: string, body: unknown, headers: Record<string, string> = {}) =>
  served.send(`/agents/${path}/dispatch`, { body, headers });

test("an input is accepted and runs in its session, and its record has the outcome", async () => {
  const { status, body } = await dispatch("echo/a", { input: "hello", session: "s" });
  expect(status).toBe(202);
  expect(body).toEqual({
    status: "accepted",
    dispatch_id: expect.any(String),
    operation_id: expect.stringMatching(/^op_/),
    accepted_at: expect.stringMatching(/^\d{4}-/),
  });
  await served.service.engine.awaitDispatch(body.dispatch_id);
  const record = await served.send(`/dispatches/${body.dispatch_id}`);
  expect(record.body).toMatchObject({
    dispatch_id: body.dispatch_id,
    agent: "echo",
    instance_id: "a",
    session: "s",
    status: "completed",
    input: "hello",
    attempts: 1,
  });
  const history = await served.send("/agents/echo/a/history?session=s");
  expect(history.body.messages).toHaveLength(2);
});

test("any JSON can be dispatched, but an input is required", async () => {
  for (const input of [{ kind: "order", lines: [1, 2] }, [1], 7, true]) {
    expect((await dispatch("echo/json", { input })).status).toBe(202);
  }
  for (const body of [
    {},
    { input: "" },
    { input: null },
    { input: "x", session: "a/b" },
    { input: "x", y: 1 },
  ]) {
    const wrong = await dispatch("echo/json", body);
    expect([body, wrong.status, wrong.body.error.type]).toEqual([body, 400, "invalid_request"]);
  }
});

test("a prompt with a key is listed with its input", async () => {
  const body = { message: "hello", thinking_level: "low" };
  await served.send("/agents/echo/keyed", { body, headers: { "idempotency-key": "k" } });
  const { dispatches } = (await served.send("/dispatches?instance_id=keyed")).body;
  expect(dispatches).toMatchObject([{ idempotency_key: "k", status: "completed", input: body }]);
  const one = await served.send(`/dispatches/${dispatches[0].dispatch_id}`);
  expect(one.body.input).toEqual(body);
});

test("an input with the same key is accepted once", async () => {
  const key = { "idempotency-key": "delivery-1" };
  const first = await dispatch("echo/b", { input: "once" }, key);
  expect((await dispatch("echo/b", { input: "once" }, key)).body).toEqual(first.body);
  expect((await dispatch("echo/b", { input: "else" }, key)).status).toBe(409);
  await served.service.engine.awaitDispatch(first.body.dispatch_id);
  const { body } = await served.send("/dispatches?agent=echo&instance_id=b");
  expect(body.dispatches).toHaveLength(1);
});

test("dispatches are listed newest first, filtered and in pages", async () => {
  for (const input of ["1", "2", "3"]) await dispatch("echo/list", { input });
  const { body } = await served.send("/dispatches?agent=echo&instance_id=list&limit=2");
  expect(body.dispatches.map((one: { input: string }) => one.input)).toEqual(["3", "2"]);
  const next = await served.send(
    `/dispatches?agent=echo&instance_id=list&cursor=${encodeURIComponent(body.next_cursor)}`,
  );
  expect(next.body.dispatches.map((one: { input: string }) => one.input)).toEqual(["1"]);
  expect(next.body.next_cursor).toBeUndefined();
  for (const query of ["status=asleep", "limit=0", "agent=a%2Fb", "colour=red"]) {
    expect([query, (await served.send(`/dispatches?${query}`)).status]).toEqual([query, 400]);
  }
});

test("a waiting dispatch is withdrawn, a running one is aborted, and an ended one cannot be cancelled", async () => {
  const running = (await dispatch("echo/c", { input: "hold" })).body.dispatch_id;
  const waiting = (await dispatch("echo/c", { input: "later" })).body.dispatch_id;
  await served.echo.held(1);
  const cancel = (id: string) => served.send(`/dispatches/${id}/cancel`, { method: "POST" });
  expect((await cancel(waiting)).body).toEqual({ cancelled: true });
  expect((await cancel(running)).body).toEqual({ cancelled: true });
  await served.service.engine.awaitDispatch(running);
  expect((await cancel(running)).body).toEqual({ cancelled: false });
  expect((await served.send(`/dispatches/${running}`)).body.status).toBe("cancelled");
});

test("a dispatch that is cancelled before its second attempt ends its operation in the stream and in the history", async () => {
  const served = await serveForTest({ engine: { backoffMs: 60_000 } });
  const { body } = await served.send("/agents/echo/e/dispatch", { body: { input: "fail" } });
  const record = async () => (await served.send(`/dispatches/${body.dispatch_id}`)).body;
  await expect.poll(record).toMatchObject({ status: "queued", next_attempt_at: expect.any(String) });
  const stream = readEventStream(await served.stream("/agents/echo/e/events"));
  expect((await served.send(`/dispatches/${body.dispatch_id}/cancel`, { method: "POST" })).body).toEqual({
    cancelled: true,
  });
  const types: string[] = [];
  const ends: KitEvent[] = [];
  for await (const { data } of stream) {
    types.push(data.type);
    if (data.type === "operation") ends.push(data);
    if (data.type === "idle") break;
  }
  expect(types.slice(-3)).toEqual(["aborted", "operation", "idle"]);
  expect(ends).toMatchObject([{ operation_kind: "prompt", is_error: true, is_aborted: true }]);
  const ended = await served.service.engine.awaitDispatch(body.dispatch_id);
  expect(ended).toMatchObject({ status: "cancelled", attempts: 1 });
  expect(await record()).toMatchObject({ status: "cancelled", attempts: 1, ended_at: ended?.ended_at });
  const history = await served.send("/agents/echo/e/history?limit=10");
  const end = { operation_id: ends[0]?.operation_id, status: "aborted", dispatch_id: body.dispatch_id };
  expect(history.body.ends).toMatchObject([end]);
  expect(history.body.messages).toMatchObject([{ role: "user", operation_id: ends[0]?.operation_id }]);
  const { operations } = (await served.send("/agents/echo/e/operations")).body;
  expect(operations).toMatchObject([{ status: "aborted", is_aborted: true }]);
});

test("only dead letters are retried, and only what exists is found", async () => {
  const { body } = await dispatch("echo/d", { input: "fine" });
  await served.service.engine.awaitDispatch(body.dispatch_id);
  const retry = (id: string) => served.send(`/dispatches/${id}/retry`, { method: "POST" });
  expect((await retry(body.dispatch_id)).body.error.type).toBe("conflict");
  for (const route of ["retry", "cancel"]) {
    const unknown = await served.send(`/dispatches/dispatch_nope/${route}`, { method: "POST" });
    expect([unknown.status, unknown.body.error.type]).toEqual([404, "not_found"]);
  }
  expect((await served.send("/dispatches/dispatch_nope")).status).toBe(404);
  expect((await served.send("/dispatches/..%2f..")).status).toBe(400);
});

test("dead letters are retried together: the requested ones that the sender may retry", async () => {
  const service = await serveForTest({
    authorize: ({ action, instance }) => !(action === "dispatch.retry" && instance === "locked"),
  });
  for (const id of ["a", "b", "c", "locked"]) {
    const { body } = await service.send(`/agents/echo/${id}/dispatch`, {
      body: { input: "fail for good" },
    });
    await service.service.engine.awaitDispatch(body.dispatch_id);
  }
  const retry = async (body: object) => (await service.send("/dispatches/retry", { body })).body;
  const receipt = await retry({ agent: "echo", instance_id: "b" });
  expect([receipt.retried.length, receipt.failed, receipt.next_cursor]).toEqual([1, [], undefined]);
  await service.service.engine.awaitDispatch(receipt.retried[0]);
  const retried: string[] = [];
  let cursor: string | undefined;
  do {
    const page = await retry({ limit: 1, ...(cursor === undefined ? {} : { cursor }) });
    retried.push(...page.retried);
    cursor = page.next_cursor;
  } while (cursor !== undefined);
  const instances = await Promise.all(
    retried.map(async (id) => (await service.service.engine.getDispatch(id))?.instance_id),
  );
  expect(new Set(instances)).toEqual(new Set(["a", "b", "c"]));
  for (const body of [{ limit: 0 }, { status: "failed" }, { agent: "" }, { cursor: "none" }])
    expect([body, (await service.send("/dispatches/retry", { body })).status]).toEqual([body, 400]);
});
