import { connect } from "node:net";
import { describe, expect, test } from "vitest";
import { standStill } from "../../testing/stand-still.ts";
import { sendRaw } from "../testing/send-request.ts";
import { serveForTest, serveForTests } from "../testing/serve-for-tests.ts";
import { serveService } from "../testing/serve-service.ts";
import { openSocket, RefusedError, type SocketClient, type SocketOptions } from "../testing/socket-client.ts";

const served = serveForTests();

const open = (path: string, options?: SocketOptions): Promise<SocketClient> =>
  openSocket(`${served.url}${path}`, options);

/** The refusal of a handshake. */
async function refusal(url: string, options?: SocketOptions) {
  const error = await openSocket(url, options).then(
    () => undefined,
    (reason: unknown) => reason,
  );
  if (!(error instanceof RefusedError)) throw new Error(`It was not refused: ${error}`);
  return { status: error.status, body: JSON.parse(error.body) };
}

const handshake = [
  "Connection: Upgrade",
  "Upgrade: websocket",
  "Sec-WebSocket-Version: 13",
  "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==",
  "",
].join("\r\n");

describe("a handshake", () => {
  test("to an unknown path is answered like a request", async () => {
    const cases = [
      ["/agents/no-such-agent/1", 404, "agent_not_found"],
      ["/agents/hidden/1", 404, "agent_not_webhook"],
      ["/workflows/nothing", 404, "workflow_not_found"],
      ["/agents/..%2fecho/1", 400, "invalid_request"],
      ["/agents/echo", 404, "not_found"],
      ["/agents/echo/1/events", 404, "not_found"],
      ["/", 404, "not_found"],
    ] as const;
    for (const [path, status, type] of cases) {
      const refused = await refusal(`${served.url}${path}`);
      expect([path, refused.status, refused.body.error.type]).toEqual([path, status, type]);
    }
  });

  test.each(["end", "resetAndDestroy"] as const)(
    "takes no slot if its client disconnects (%s) before it is admitted",
    async (disconnect) => {
      const requested = Promise.withResolvers<void>();
      const permitted = Promise.withResolvers<true>();
      const auth = (): Promise<true> => {
        requested.resolve();
        return permitted.promise;
      };
      const small = await serveService({ limits: { webSockets: 1 }, access: { auth } });
      const client = connect(small.port, "127.0.0.1");
      try {
        client.write(`GET /agents/echo/1 HTTP/1.1\r\nHost: 127.0.0.1:${small.port}\r\n${handshake}\r\n`);
        await requested.promise;
        client[disconnect]();
        await new Promise((resolve) => setTimeout(resolve, 50));
        permitted.resolve(true);
        const next = async (): Promise<string> => {
          const { socket } = await openSocket(`${small.url}/agents/echo/1`);
          socket.close();
          return "opened";
        };
        await expect.poll(() => next().catch(String)).toBe("opened");
      } finally {
        client.destroy();
        await small.close();
      }
    },
  );

  test("from a foreign page, or for a foreign host, is refused", async () => {
    const url = `${served.url}/agents/echo/1`;
    expect(await refusal(url, { headers: { origin: "https://evil.example" } })).toMatchObject({
      status: 403,
    });
    expect(await refusal(url, { headers: { host: "evil.example" } })).toMatchObject({ status: 403 });
    const socket = await open("/agents/echo/1", { headers: { origin: served.url } });
    socket.socket.close();
  });

  test("carries its key in a header or, from a browser, as a subprotocol", async () => {
    const guarded = await serveForTest({ access: { apiKeys: ["a-key/with+signs"] } });
    const url = `${guarded.url}/agents/echo/1`;
    const encoded = Buffer.from("a-key/with+signs").toString("base64url");
    const wrong = Buffer.from("another").toString("base64url");
    for (const options of [
      {},
      { headers: { authorization: "Bearer another" } },
      { protocols: ["kit", `kit.bearer.${wrong}`] },
      { protocols: ["kit", "kit.bearer."] },
    ]) {
      expect(await refusal(url, options)).toMatchObject({
        status: 401,
        body: { error: { type: "unauthorized" } },
      });
    }
    expect(await refusal(`${url}?token=a-key/with+signs`)).toMatchObject({ status: 401 });
    const twice = "Authorization: Bearer a-key/with+signs\r\nAuthorization: Bearer another\r\n";
    for (const head of ["POST", "GET"].map((method) => `${method} /agents/echo/1 HTTP/1.1\r\n`)) {
      const upgrade = head.startsWith("GET") ? handshake : "Connection: close\r\n";
      const lines = `${head}Host: localhost\r\n${twice}${upgrade}\r\n`;
      const reply = await sendRaw(guarded.port, lines);
      expect(reply).toMatch(/^HTTP\/1\.1 401 /);
    }
    const byHeader = await openSocket(url, { headers: { authorization: "Bearer a-key/with+signs" } });
    const byProtocol = await openSocket(url, { protocols: ["kit", `kit.bearer.${encoded}`] });
    expect(byProtocol.socket.protocol).toBe("kit");
    expect((await byHeader.next()).type).toBe("ready");
    expect((await byProtocol.next()).type).toBe("ready");
  });

  test("beyond the limit is asked to retry later", async () => {
    const small = await serveForTest({ limits: { webSockets: 1 } });
    const first = await openSocket(`${small.url}/agents/echo/1`);
    expect(await refusal(`${small.url}/agents/echo/2`)).toMatchObject({
      status: 503,
      body: { error: { type: "unavailable" } },
    });
    first.socket.close();
    await first.closed;
    (await openSocket(`${small.url}/agents/echo/2`)).socket.close();
  });
});

test("with keys, a principal has a limited share of the connections, so that others can connect", async () => {
  const keys = ["first-key-of-sixteen", "second-key-of-sixteen"];
  const [first, second] = keys.map((key) => ({ headers: { authorization: `Bearer ${key}` } }));
  const shared = await serveForTest({
    access: { apiKeys: keys },
    limits: { webSockets: 10, webSocketsPerPrincipal: 2 },
  });
  const url = `${shared.url}/agents/echo/1`;
  const sockets = [await openSocket(url, first), await openSocket(url, first)];
  expect(await refusal(url, first)).toMatchObject({
    status: 429,
    body: { error: { type: "too_many_requests", meta: { scope: "principal", open: 2 } } },
  });
  (await openSocket(url, second)).socket.close();
  sockets[0]?.socket.close();
  await sockets[0]?.closed;
  (await openSocket(url, first)).socket.close();
});

test("a client that answers no ping is disconnected, and one that does stays connected", async () => {
  const quick = await serveForTest({ limits: { heartbeatMs: 1_000 } });
  const dead = await openSocket(`${quick.url}/agents/echo/1`);
  // Reads nothing any more, and so never sees a ping.
  dead.socket.pause();
  const live = await openSocket(`${quick.url}/agents/echo/2`);
  let pings = 0;
  await new Promise<void>((resolve) => {
    live.socket.on("ping", () => {
      pings += 1;
      if (pings === 3) resolve();
    });
  });
  live.send({ type: "ping" });
  expect((await live.until("pong")).at(-1)).toEqual({ type: "pong" });
  dead.socket.resume();
  expect(await dead.closed).toBe(1006);
});

test("a client that has answered stays connected if the server was frozen before it read the answer", async () => {
  const quick = await serveForTest({ limits: { heartbeatMs: 300 } });
  const { socket, closed } = await openSocket(`${quick.url}/agents/echo/1`);
  let pings = 0;
  const third = new Promise<string>((resolve) => {
    // The pong is sent by now.
    socket.on("ping", () => {
      pings += 1;
      if (pings === 1) standStill(350);
      if (pings === 3) resolve("stays");
    });
  });
  expect(await Promise.race([third, closed])).toBe("stays");
  socket.close();
});

test("two hundred connections work in parallel", async () => {
  const clients = await Promise.all(Array.from({ length: 200 }, (_, id) => open(`/agents/echo/crowd-${id}`)));
  const texts = clients.map(async (client, id) => {
    client.send({ type: "prompt", request_id: "1", message: `number ${id}` });
    return (await client.until("result")).at(-1).result.text;
  });
  expect(await Promise.all(texts)).toEqual(clients.map((_, id) => `number ${id}`));
  for (const { socket } of clients) socket.close();
});

test("a closing server closes idle connections at once, and others after their answer", async () => {
  const closing = await serveService();
  const idle = await openSocket(`${closing.url}/agents/echo/1`);
  const busy = await openSocket(`${closing.url}/agents/echo/2`);
  const workflow = await openSocket(`${closing.url}/workflows/waiting`);
  workflow.send({ type: "invoke", request_id: "1" });
  await workflow.until("started");
  busy.send({ type: "prompt", request_id: "1", message: "hold" });
  await closing.echo.held(1);
  const closed = closing.close();
  expect([await idle.closed, await workflow.closed]).toEqual([1001, 1001]);
  busy.send({ type: "prompt", request_id: "2", message: "too late" });
  expect((await busy.until("error")).at(-1)).toMatchObject({
    request_id: "2",
    error: { type: "unavailable" },
  });
  closing.echo.release();
  expect((await busy.until("result")).at(-1).result.text).toBe("hold");
  expect(await busy.closed).toBe(1001);
  await closed;
});

test("a closing server waits no longer than its time limit", async () => {
  const closing = await serveService({ limits: { closeGraceMs: 50 } });
  const busy = await openSocket(`${closing.url}/agents/echo/1`);
  busy.send({ type: "prompt", request_id: "1", message: "hold" });
  await closing.echo.held(1);
  const reply = closing
    .send("/agents/echo/2", { body: { message: "hold" } })
    .catch((error: unknown) => error);
  await closing.echo.held(2);
  await closing.close();
  expect(await busy.closed).toBe(1006);
  expect(await reply).toBeInstanceOf(TypeError);
});

test("a closing server ends a handshake that is not decided yet", async () => {
  const requested = Promise.withResolvers<void>();
  const closing = await serveService({
    limits: { closeGraceMs: 50, hookTimeoutMs: 3_600_000 },
    authorize: () => {
      requested.resolve();
      return new Promise<never>(() => undefined);
    },
  });
  const refused = openSocket(`${closing.url}/agents/echo/1`).catch((error: unknown) => error);
  await requested.promise;
  await closing.close();
  expect(await refused).toBeInstanceOf(Error);
});

test("an invalid request for a WebSocket is refused with an envelope, and logged", async () => {
  const entries: { readonly path: string; readonly status: number }[] = [];
  const logged = await serveForTest({ onRequest: ({ path, status }) => entries.push({ path, status }) });
  const head = `Host: 127.0.0.1:${logged.port}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n`;
  const raw = `GET /agents/echo/1 HTTP/1.1\r\n${head}Sec-WebSocket-Version: 13\r\n\r\n`;
  const reply = await sendRaw(logged.port, raw);
  expect(reply).toMatch(/^HTTP\/1\.1 400 Bad Request\r\n/);
  expect(reply).toContain('"type":"invalid_request"');
  const other = raw.replace("websocket", "h2c").replace("/agents/echo/1", "/health");
  expect(await sendRaw(logged.port, other)).toMatch(/^HTTP\/1\.1 200 OK/);
  (await openSocket(`${logged.url}/agents/echo/1?x=1`)).socket.close();
  expect(entries).toEqual([
    { path: "/agents/echo/1", status: 400 },
    { path: "/health", status: 200 },
    { path: "/agents/echo/1", status: 101 },
  ]);
});
