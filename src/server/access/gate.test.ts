import { describe, expect, test } from "vitest";
import type { AuthRequest } from "../../app/config/server-schema.ts";
import type { AuthorizeRequest } from "../../protocol/access.ts";
import { collectEvents } from "../testing/read-event-stream.ts";
import { serveForTest } from "../testing/serve-for-tests.ts";
import { openSocket, RefusedError } from "../testing/socket-client.ts";

const key = "a-secret-key";
const bearer = { authorization: `Bearer ${key}` };

describe("authorize", () => {
  test("is called for every action with principal, action and target, and never gets a key", async () => {
    const authorized: AuthorizeRequest[] = [];
    const authorize = (request: AuthorizeRequest): boolean => authorized.push(request) > 0;
    const { send, stream, url } = await serveForTest({ access: { apiKeys: [key] }, authorize });
    const headers = bearer;
    await send("/agents/echo/1", { body: { message: "x" }, headers });
    const { body } = await send("/agents/echo/1/dispatch", { body: { input: "x" }, headers });
    await send("/agents/echo/1/history", { headers });
    await send("/agents/echo/1/approvals", { headers });
    await send("/agents/echo/1/approvals/approval_1", { body: { approved: true }, headers });
    await send("/agents/echo/1/abort", { body: {}, headers });
    await send("/dispatches?agent=echo&instance_id=1", { headers });
    await send(`/dispatches/${body.dispatch_id}`, { headers });
    await send(`/dispatches/${body.dispatch_id}/retry`, { method: "POST", headers });
    await send(`/dispatches/${body.dispatch_id}/cancel`, { method: "POST", headers });
    await send("/agents/echo/1", { method: "DELETE", headers });
    const run = await send("/workflows/strict", { body: { n: 1 }, headers });
    await send("/runs?workflow=strict", { headers });
    await collectEvents(await stream(`/runs/${run.body.run_id}/stream`, { headers }));
    await send(`/runs/${run.body.run_id}/cancel`, { method: "POST", headers });
    await send(`/runs/${run.body.run_id}/signal`, { body: { name: "x" }, headers });
    await send("/prompt/s", { body: { message: "x" }, headers });
    const socket = await openSocket(`${url}/agents/echo/2`, { headers });
    socket.send({ type: "prompt", request_id: "1", message: "x" });
    await socket.until("result");
    const instance = { agent: "echo", instance: "1" };
    const ofRun = { workflow: "strict", run_id: run.body.run_id };
    expect(authorized.map(({ principal: _, ...rest }) => rest)).toEqual([
      { action: "agent.prompt", ...instance },
      { action: "agent.dispatch", ...instance },
      { action: "agent.read", ...instance },
      { action: "agent.read", ...instance },
      { action: "agent.approve", ...instance },
      { action: "agent.abort", ...instance },
      { action: "dispatch.list", ...instance },
      { action: "dispatch.read", ...instance },
      { action: "dispatch.read", ...instance },
      { action: "dispatch.retry", ...instance },
      { action: "dispatch.cancel", ...instance },
      { action: "agent.delete", ...instance },
      { action: "workflow.run", workflow: "strict" },
      { action: "run.list", workflow: "strict" },
      { action: "run.read", ...ofRun },
      { action: "run.read", ...ofRun },
      { action: "run.cancel", ...ofRun },
      { action: "run.signal", ...ofRun },
      { action: "agent.prompt", agent: "default", instance: "default" },
      { action: "agent.prompt", agent: "echo", instance: "2" },
      { action: "agent.prompt", agent: "echo", instance: "2" },
    ]);
    expect(new Set(authorized.map(({ principal }) => principal?.id)).size).toBe(1);
    expect(authorized[0]?.principal).toEqual({ id: expect.stringMatching(/^key_[0-9a-f]{12}$/) });
    expect(JSON.stringify(authorized)).not.toContain(key);
  });

  test("limits a principal to its own instances on every route, before anything is done", async () => {
    const auth = ({ headers }: AuthRequest) => {
      const tenant = headers.get("x-tenant");
      return tenant === null ? false : { id: tenant, tenant };
    };
    const authorize = ({ principal, instance }: AuthorizeRequest): boolean =>
      instance?.startsWith(`${principal?.tenant}-`) === true;
    const { send, url, service } = await serveForTest({ access: { auth }, authorize });
    const headers = { "x-tenant": "a" };
    expect((await send("/agents/echo/a-1", { body: { message: "x" } })).status).toBe(401);
    expect((await send("/agents/echo/a-1", { body: { message: "x" }, headers })).status).toBe(200);
    const dispatched = await send("/agents/echo/b-1/dispatch", {
      body: { input: "x" },
      headers: { "x-tenant": "b" },
    });
    const id = dispatched.body.dispatch_id;
    const denied = [
      ["/agents/echo/b-1", { body: { message: "x" } }],
      ["/agents/echo/b-1", { body: "no body is looked at" }],
      ["/agents/echo/b-1/dispatch", { body: { input: "x" } }],
      ["/agents/echo/b-1/history", {}],
      ["/agents/echo/b-1/events", {}],
      ["/agents/echo/b-1/abort", { body: {} }],
      ["/agents/echo/b-1", { method: "DELETE" }],
      ["/agents/no-such-agent/b-1", { body: { message: "x" } }],
      ["/dispatches", {}],
      ["/workflows/strict", { body: { n: 1 } }],
      ["/runs", {}],
      ["/prompt/s", { body: { message: "x" } }],
    ] as const;
    for (const [path, request] of denied) {
      const { status, body } = await send(path, { ...request, headers });
      expect([path, status, body.error.type]).toEqual([path, 403, "forbidden"]);
    }
    expect((await send(`/dispatches/${id}`, { headers })).status).toBe(404);
    expect((await send(`/dispatches/${id}/cancel`, { method: "POST", headers })).status).toBe(404);
    const refused = await openSocket(`${url}/agents/echo/b-1`, { headers }).catch((error: unknown) => error);
    expect(refused).toBeInstanceOf(RefusedError);
    expect(refused).toMatchObject({ status: 403 });
    await service.engine.awaitDispatch(id);
    expect((await service.engine.listRuns()).items).toEqual([]);
  });

  test("records the principal who approved a call", async () => {
    const { send, stream } = await serveForTest({ access: { apiKeys: [key] } });
    const reply = send("/agents/careful/1", { body: { message: "pay 1" }, headers: bearer });
    const events = await stream("/agents/careful/1/events", { headers: bearer });
    let text = "";
    for await (const chunk of events.body?.pipeThrough(new TextDecoderStream()) ?? []) {
      text += chunk;
      if (text.includes("event: approval_request")) break;
    }
    const { body } = await send("/agents/careful/1/approvals", { headers: bearer });
    const path = `/agents/careful/1/approvals/${body.approvals[0].approval_id}`;
    await send(path, { body: { approved: true }, headers: bearer });
    await reply;
    const replay = await stream("/agents/careful/1/events", { headers: bearer });
    for await (const chunk of replay.body?.pipeThrough(new TextDecoderStream()) ?? []) {
      text += chunk;
      if (text.includes("event: idle")) break;
    }
    expect(text).toMatch(/"type":"approval",.*"by":"key_[0-9a-f]{12}"/);
  });
});

describe("an idempotency key belongs to its principal:", () => {
  const another = { authorization: "Bearer another" };
  const options = { access: { apiKeys: [key, "another"] } };
  const withKey = { ...bearer, "idempotency-key": "1" };
  const withOtherKey = { ...another, "idempotency-key": "1" };

  test("a sender does not get the result of another sender's run", async () => {
    // A sender who may run a workflow need not be one who may read the results of others' runs.
    const authorize = ({ action }: AuthorizeRequest): boolean => action === "workflow.run";
    const { send, stream, service } = await serveForTest({ ...options, authorize });
    const path = "/workflows/strict?wait=result";
    const mine = await send(path, { body: { n: 1 }, headers: withKey });
    const again = await send(path, { body: { n: 1 }, headers: withKey });
    expect(again.body).toEqual(mine.body);
    const theirs = await send(path, { body: { n: 1 }, headers: withOtherKey });
    expect(theirs.status).toBe(200);
    expect(theirs.body.run_id).not.toBe(mine.body.run_id);
    const events = await collectEvents(
      await stream("/workflows/strict", { body: { n: 1 }, headers: withOtherKey }),
    );
    expect(events[0]?.data.run_id).toBe(theirs.body.run_id);
    // Nor told that another has used the key.
    const other = await send(path, { body: { n: 2 }, headers: { ...another, "idempotency-key": "2" } });
    expect(other.status).toBe(200);
    expect(
      (await send(path, { body: { n: 3 }, headers: { ...bearer, "idempotency-key": "2" } })).status,
    ).toBe(200);
    expect((await service.engine.listRuns()).items).toHaveLength(4);
  });

  test("nor another sender's answer, receipt or accepted signal", async () => {
    const { send, service } = await serveForTest(options);
    const prompt = (headers: Record<string, string>) =>
      send("/agents/echo/1", { body: { message: "mine" }, headers });
    const [mine, again, theirs] = [await prompt(withKey), await prompt(withKey), await prompt(withOtherKey)];
    expect(again.body).toEqual(mine.body);
    expect(theirs.body.result.metadata.operation_id).not.toBe(mine.body.result.metadata.operation_id);
    const dispatch = (headers: Record<string, string>) =>
      send("/agents/echo/2/dispatch", { body: { input: "mine" }, headers });
    const receipts = [await dispatch(withKey), await dispatch(withKey), await dispatch(withOtherKey)];
    expect(receipts[1]?.body).toEqual(receipts[0]?.body);
    expect(receipts[2]?.body.dispatch_id).not.toBe(receipts[0]?.body.dispatch_id);
    const { body } = await send("/dispatches?instance_id=2", { headers: bearer });
    expect(body.dispatches.map((one: { idempotency_key: string }) => one.idempotency_key)).toEqual([
      "1",
      "1",
    ]);
    const { run_id } = await service.startRun("waiting", {});
    for (const [headers, payload] of [
      [withOtherKey, "theirs"],
      [withKey, "mine"],
    ] as const) {
      const signal = { name: payload === "mine" ? "word" : "other", payload };
      expect((await send(`/runs/${run_id}/signal`, { body: signal, headers })).status).toBe(202);
    }
    expect(await service.engine.awaitRun(run_id)).toMatchObject({ result: { said: "mine" } });
  });
});

test("auth gets the decoded agent and instance, and can refuse them", async () => {
  const reported: Pick<AuthRequest, "agent" | "instance">[] = [];
  const auth = ({ agent, instance }: AuthRequest): boolean => {
    reported.push({
      ...(agent === undefined ? {} : { agent }),
      ...(instance === undefined ? {} : { instance }),
    });
    return instance !== "other tenant";
  };
  const { send } = await serveForTest({ access: { auth } });
  expect((await send("/agents/echo/m%C3%BCller/history")).status).toBe(404);
  expect((await send("/agents/echo/other%20tenant/history")).status).toBe(401);
  expect((await send("/agents/echo/%ff/history")).status).toBe(400);
  expect((await send("/agents")).status).toBe(200);
  expect((await send("/prompt/s", { body: { message: "x" } })).status).toBe(200);
  expect((await send("/health")).status).toBe(200);

  expect(reported).toEqual([
    { agent: "echo", instance: "müller" },
    { agent: "echo", instance: "other tenant" },
    {},
    {},
    { agent: "default", instance: "default" },
  ]);
});

test("a principal over its rate limit is refused, others are not, and a WebSocket's prompts count", async () => {
  const options = { access: { apiKeys: [key, "another"] }, rateLimit: { requests: 3, per_seconds: 3_600 } };
  const { send, url } = await serveForTest(options);
  for (let count = 0; count < 3; count += 1)
    expect((await send("/agents", { headers: bearer })).status).toBe(200);
  const { status, headers, body } = await send("/agents", { headers: bearer });
  expect([status, headers.get("retry-after"), body.error.type]).toEqual([429, "1200", "too_many_requests"]);
  expect((await send("/health")).status).toBe(200);
  const socket = await openSocket(`${url}/agents/echo/1`, { headers: { authorization: "Bearer another" } });
  for (const request_id of ["1", "2"]) {
    socket.send({ type: "prompt", request_id, message: "x" });
    await socket.until("result");
  }
  socket.send({ type: "prompt", request_id: "3", message: "x" });
  expect((await socket.until("error")).at(-1).error.type).toBe("too_many_requests");
});
