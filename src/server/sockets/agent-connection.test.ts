import { setTimeout as delay } from "node:timers/promises";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { describe, expect, test } from "vitest";
import { KitError } from "../../base/kit-error.ts";
import { serveForTest, serveForTests } from "../testing/serve-for-tests.ts";
import { openSocket, type SocketClient, type SocketOptions } from "../testing/socket-client.ts";

setFlagsFromString("--expose-gc");
const collectGarbage: () => void = runInNewContext("gc");

const served = serveForTests({ limits: { webSocketPrompts: 3 } });

const open = (path: string, options?: SocketOptions): Promise<SocketClient> =>
  openSocket(`${served.url}${path}`, options);

describe("a connection to an agent", () => {
  test("is greeted, accepts many prompts, and answers each with its events and its result", async () => {
    const client = await open("/agents/echo/a", { protocols: ["kit"] });
    expect(client.socket.protocol).toBe("kit");
    expect(await client.next()).toEqual({ type: "ready", target: "agent", name: "echo", instance_id: "a" });
    for (const [request_id, message] of [
      ["1", "one two"],
      ["2", "three"],
    ]) {
      client.send({ type: "prompt", request_id, message });
      const frames = await client.until("result");
      expect(frames[0]).toEqual({ type: "started", request_id });
      expect(frames.every((frame) => frame.request_id === request_id)).toBe(true);
      const deltas = frames.filter(({ event }) => event?.type === "text_delta");
      expect(deltas.map(({ event }) => event.text).join("")).toBe(message);
      expect(frames.at(-1).result).toMatchObject({ text: message, usage: expect.any(Object) });
    }
    client.send({ type: "ping" });
    expect(await client.next()).toEqual({ type: "pong" });
    const { body } = await served.send("/agents/echo/a/history");
    expect(body.messages).toHaveLength(4);
    client.socket.close();
  });

  test("does not keep the errors of refused prompts", async () => {
    const refusals: WeakRef<KitError>[] = [];
    const authorize = (): boolean => {
      if (isOpen) {
        const refusal = new KitError({ code: "forbidden", message: "No." });
        refusals.push(new WeakRef(refusal));
        throw refusal;
      }
      return true;
    };
    let isOpen = false;
    const guarded = await serveForTest({ authorize });
    const client = await openSocket(`${guarded.url}/agents/echo/refused`);
    await client.until("ready");
    isOpen = true;
    for (let sent = 0; sent < 20; sent += 1) {
      client.send({ type: "prompt", request_id: "1", message: "x" });
      await client.until("error");
    }
    await expect
      .poll(() => {
        collectGarbage();
        return refusals.slice(0, -2).filter((refusal) => refusal.deref() !== undefined).length;
      })
      .toBe(0);
    client.socket.close();
  });

  test("runs the prompts of a session in their order, and those of other sessions in parallel", async () => {
    const client = await open("/agents/echo/order");
    await client.until("ready");
    client.send({ type: "prompt", request_id: "first", message: "hold" });
    client.send({ type: "prompt", request_id: "second", message: "after it" });
    client.send({ type: "prompt", request_id: "beside", message: "beside it", session: "side" });
    expect((await client.until("result")).at(-1).request_id).toBe("beside");
    client.send({ type: "prompt", request_id: "beside", message: "again", session: "side" });
    expect((await client.until("result")).at(-1).request_id).toBe("beside");
    served.echo.release();
    expect((await client.until("result")).at(-1).request_id).toBe("first");
    expect((await client.until("result")).at(-1).request_id).toBe("second");
    const { body } = await served.send("/agents/echo/order/history");
    expect(body.messages.map((one: { content: { text: string }[] }) => one.content[0]?.text)).toEqual([
      "hold",
      "hold",
      "after it",
      "after it",
    ]);
    client.socket.close();
  });

  test("aborts the named prompt, also a waiting one, and continues", async () => {
    const client = await open("/agents/echo/abort");
    await client.until("ready");
    client.send({ type: "prompt", request_id: "1", message: "hold" });
    client.send({ type: "prompt", request_id: "2", message: "never said" });
    await served.echo.held(2);
    client.send({ type: "abort", request_id: "2" });
    client.send({ type: "abort", request_id: "1" });
    client.send({ type: "abort", request_id: "unknown" });
    const [first, second] = [(await client.until("error")).at(-1), (await client.until("error")).at(-1)];
    // The one that waits leaves its line at once.
    expect([first, second]).toMatchObject([
      { request_id: "2", error: { type: "aborted" } },
      { request_id: "1", error: { type: "aborted" } },
    ]);
    client.send({ type: "prompt", request_id: "3", message: "on" });
    expect((await client.until("result")).at(-1).result.text).toBe("on");
    client.socket.close();
  });

  test("aborts its running prompts when it is closed", async () => {
    const client = await open("/agents/echo/gone");
    await client.until("ready");
    client.send({ type: "prompt", request_id: "1", message: "hold" });
    await served.echo.held(3);
    client.socket.terminate();
    const target = { agent: "echo", instance_id: "gone" };
    for await (const event of served.service.events(target, {})) if (event.type === "aborted") break;
  });

  test("answers an invalid frame with an error that names the fault, and stays open", async () => {
    const client = await open("/agents/echo/wrong");
    await client.until("ready");
    const wrong = [
      ["not json", "invalid_json", undefined],
      ["[]", "invalid_request", undefined],
      ['{"message":"hi"}', "invalid_request", undefined],
      [{ type: "prompt", request_id: "1" }, "invalid_request", "1"],
      [{ type: "prompt", request_id: "1", message: "x", session: "../x" }, "invalid_request", "1"],
      [{ type: "prompt", request_id: 7, message: "x" }, "invalid_request", undefined],
      [{ type: "invoke", request_id: "2", payload: {} }, "invalid_request", "2"],
      ["[".repeat(1_000), "invalid_json", undefined],
      [{ type: "prompt", request_id: "3", message: "fail" }, "model_error", "3"],
    ] as const;
    for (const [frame, type, requestId] of wrong) {
      client.send(frame);
      const error = (await client.until("error")).at(-1);
      expect([frame, error.error.type, error.request_id]).toEqual([frame, type, requestId]);
    }
    client.send({ type: "prompt", request_id: "4", message: "x", colour: 1 });
    const { error } = (await client.until("error")).at(-1);
    expect(error.meta.issues).toEqual([{ path: "frame.colour", message: "is not known here" }]);
    client.send({ type: "ping" });
    expect(await client.next()).toEqual({ type: "pong" });
    client.socket.close();
  });

  test("limits the running prompts, and distinguishes request ids", async () => {
    const client = await open("/agents/echo/many");
    await client.until("ready");
    for (const request_id of ["1", "2", "3"]) client.send({ type: "prompt", request_id, message: "hold" });
    client.send({ type: "prompt", request_id: "1", message: "x" });
    expect((await client.until("error")).at(-1)).toMatchObject({
      request_id: "1",
      error: { type: "conflict" },
    });
    client.send({ type: "prompt", request_id: "4", message: "x" });
    expect((await client.until("error")).at(-1)).toMatchObject({
      request_id: "4",
      error: { type: "too_many_requests" },
    });
    client.socket.close();
  });

  test("is closed for a frame that is too large or is not text", async () => {
    const large = await open("/agents/echo/large");
    large.send(`"${"a".repeat(2_000_000)}"`);
    expect(await large.closed).toBe(1009);
    const binary = await open("/agents/echo/binary");
    binary.socket.send(Buffer.from([1, 2]));
    expect(await binary.closed).toBe(1003);
    expect((await served.send("/health")).status).toBe(200);
  });

  test("approves the call that a tool waits for", async () => {
    const client = await open("/agents/careful/ws");
    await client.until("ready");
    const ask = async (request_id: string) => {
      client.send({ type: "prompt", request_id, message: "pay 7" });
      for (;;) {
        const { event } = (await client.until("event")).at(-1);
        if (event.type === "approval_request") return event.approval_id;
      }
    };
    client.send({ type: "approve", request_id: "a", approval_id: await ask("1"), approved: true });
    const frames = [...(await client.until("result")), ...(await client.until("result"))];
    expect(frames.filter(({ type }) => type === "result")).toMatchObject([
      { request_id: "a", result: { approved: true } },
      { request_id: "1", result: { text: "It is done." } },
    ]);
    client.send({ type: "approve", request_id: "b", approval_id: "approval_unknown", approved: true });
    expect((await client.until("error")).at(-1)).toMatchObject({
      request_id: "b",
      error: { type: "not_found" },
    });
    client.send({ type: "approve", approval_id: await ask("2"), approved: false, reason: "Too much." });
    await client.until("result");
    const { body } = await served.send("/agents/careful/ws/history");
    expect(JSON.stringify(body)).toMatch(/Paid 7 cents.*Too much\./);
    client.socket.close();
  });
});

test("undecided approvals are limited, and count against the rate limit", async () => {
  const requested = Promise.withResolvers<boolean>();
  // Files that are written within a tick of the clock after a tool ran count as written by it.
  await delay(40);
  const small = await serveForTest({
    limits: { webSocketPrompts: 2 },
    rateLimit: { requests: 4, per_seconds: 3_600 },
    authorize: ({ action }) => (action === "agent.approve" ? requested.promise : true),
  });
  // The handshake is the first of four.
  const client = await openSocket(`${small.url}/agents/careful/1`);
  await client.until("ready");
  const approve = (request_id: string): void =>
    client.send({ type: "approve", request_id, approval_id: "approval_unknown", approved: true });
  for (const request_id of ["1", "2", "3"]) approve(request_id);
  const refused = (await client.until("error")).at(-1);
  expect(refused).toMatchObject({ request_id: "3", error: { type: "too_many_requests" } });
  requested.resolve(true);
  for (const request_id of ["1", "2"]) {
    const judged = (await client.until("error")).at(-1);
    expect(judged).toMatchObject({ request_id, error: { type: "not_found" } });
  }
  for (const [request_id, type] of [
    ["4", "not_found"],
    ["5", "too_many_requests"],
  ] as const) {
    approve(request_id);
    expect((await client.until("error")).at(-1)).toMatchObject({ request_id, error: { type } });
  }
  client.socket.close();
});

test("a client that does not read its many frames is informed, and its prompt is aborted", async () => {
  const small = await serveForTest({ limits: { unreadBytes: 50_000 } });
  const client = await openSocket(`${small.url}/agents/echo/slow`);
  await client.until("ready");
  client.socket.pause();
  client.send({ type: "prompt", request_id: "1", message: "long" });
  const target = { agent: "echo", instance_id: "slow" };
  for await (const event of small.service.events(target, {})) if (event.type === "aborted") break;
  client.socket.resume();
  expect(await client.closed).toBe(1013);
});

test("prompts of a connection keep their order even if the first permission check takes longer", async () => {
  const slow = Promise.withResolvers<boolean>();
  const permissions: (boolean | Promise<boolean>)[] = [];
  const guarded = await serveForTest({ authorize: () => permissions.shift() ?? true });
  const client = await openSocket(`${guarded.url}/agents/echo/slow`);
  await client.until("ready");
  permissions.push(slow.promise);
  for (const request_id of ["1", "2"]) client.send({ type: "prompt", request_id, message: request_id });
  client.send({ type: "ping" });
  await client.until("pong");
  slow.resolve(true);
  const [first, second] = [await client.until("result"), await client.until("result")];
  expect([first?.at(-1).request_id, second?.at(-1).request_id]).toEqual(["1", "2"]);
  client.socket.close();
});
