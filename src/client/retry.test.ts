import { once } from "node:events";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { afterEach, expect, test } from "vitest";
import type { KitClientOptions } from "./call-options.ts";
import { KitClient } from "./kit-client.ts";

type Answer = (response: ServerResponse, request: IncomingMessage) => void;

const closing: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0)) await close();
});

/** A server that gives each request the next answer, and the last one again. */
async function answering(
  answers: readonly Answer[],
  options: Partial<KitClientOptions> = {},
): Promise<{ readonly client: KitClient; readonly requests: IncomingMessage[] }> {
  const requests: IncomingMessage[] = [];
  const server = createServer((request, response) => {
    const answer = answers[Math.min(requests.length, answers.length - 1)];
    requests.push(request);
    answer?.(response, request);
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  closing.push(async () => {
    server.closeAllConnections();
    server.close();
    await once(server, "close");
  });
  const address = server.address();
  const port = typeof address === "object" ? address?.port : undefined;
  const client = new KitClient({
    baseUrl: `http://127.0.0.1:${port}/base/`,
    retry: { baseDelayMs: 1, maxDelayMs: 5_000 },
    ...options,
  });
  return { client, requests };
}

const ok: Answer = (response) =>
  response.end(JSON.stringify({ ok: true, agents: [], result: { text: "hi" } }));
const hangUp: Answer = (response) => response.destroy();
const silent: Answer = () => undefined;

function refuse(status: number, type: string, headers: Record<string, string> = {}): Answer {
  return (response) => {
    response.writeHead(status, headers);
    response.end(
      JSON.stringify({ error: { type, message: "No.", details: "Do this.", meta: { run_id: "run_1" } } }),
    );
  };
}

const busy = refuse(429, "too_many_requests", { "retry-after": "0" });
const away = refuse(503, "unavailable");

test("a delete whose first answer was lost succeeds", async () => {
  const gone = refuse(404, "not_found");
  const { client, requests } = await answering([hangUp, gone]);
  await client.agents.delete("a", { id: "1" });
  expect(requests.map(({ method }) => method)).toEqual(["DELETE", "DELETE"]);
  await expect(client.agents.delete("a", { id: "2" })).rejects.toMatchObject({ code: "not_found" });
});

test("an invalid call throws its own error, not that of an unreachable server", async () => {
  const { client, requests } = await answering([ok]);
  for (const idempotencyKey of ["", "clé", "キー", "k".repeat(129), "a\nb"]) {
    const sending = client.agents.dispatch("a", { id: "1", input: "x" }, { idempotencyKey });
    await expect(sending).rejects.toMatchObject({ code: "invalid_request" });
  }
  const circle: { self?: unknown } = {};
  circle.self = circle;
  await expect(client.agents.dispatch("a", { id: "1", input: circle })).rejects.toThrow(TypeError);
  expect(requests).toEqual([]);
});

test("a read is retried after a broken connection, 429 and 503", async () => {
  const { client, requests } = await answering([hangUp, busy, away, ok]);
  expect(await client.health()).toMatchObject({ ok: true });
  expect(requests.map(({ url }) => url)).toEqual(Array.from({ length: 4 }, () => "/base/health"));
});

test("a call is tried as often as the retry policy allows", async () => {
  const { client, requests } = await answering([away], { retry: { attempts: 2, baseDelayMs: 1 } });
  await expect(client.health()).rejects.toMatchObject({ code: "unavailable", meta: { status: 503 } });
  expect(requests).toHaveLength(2);
});

test("a call that starts work is not retried without an idempotency key", async () => {
  for (const answer of [hangUp, busy, away]) {
    const { client, requests } = await answering([answer, ok]);
    await expect(client.agents.invoke("a", { id: "1", message: "x" })).rejects.toThrow();
    await expect(client.agents.dispatch("a", { id: "1", input: "x" })).resolves.toBeTruthy();
    expect(requests).toHaveLength(2);
  }
});

test("a call with an idempotency key is retried with the same key", async () => {
  const { client, requests } = await answering([hangUp, away, ok]);
  await client.agents.dispatch("a", { id: "1", input: "x" }, { idempotencyKey: "key-1" });
  expect(requests.map(({ headers }) => headers["idempotency-key"])).toEqual(["key-1", "key-1", "key-1"]);
});

test("a call that can be repeated goes on while its work changes its owner", async () => {
  const lost = refuse(409, "lease_lost", { "retry-after": "0" });
  const { client, requests } = await answering([lost, lost, ok, lost]);
  const call = { id: "1", input: "x" };
  await client.agents.dispatch("a", call, { idempotencyKey: "key-1" });
  expect(requests).toHaveLength(3);
  await expect(client.agents.dispatch("a", call)).rejects.toMatchObject({ code: "lease_lost" });
});

test("a permanent error is not retried", async () => {
  for (const answer of [
    refuse(404, "not_found"),
    refuse(500, "internal_error"),
    refuse(429, "budget_exceeded"),
  ]) {
    const { client, requests } = await answering([answer, ok]);
    await expect(client.health()).rejects.toThrow();
    expect(requests).toHaveLength(1);
  }
});

test("the call fails if the server asks for a longer delay than the retry policy allows", async () => {
  const { client, requests } = await answering([
    refuse(429, "too_many_requests", { "retry-after": "7" }),
    ok,
  ]);
  await expect(client.health()).rejects.toMatchObject({
    code: "too_many_requests",
    meta: { status: 429, retry_after_s: 7, run_id: "run_1" },
  });
  expect(requests).toHaveLength(1);
});

test("the error's code is the envelope's type, also a type that the client does not know", async () => {
  const { client } = await answering([refuse(418, "teapot")]);
  await expect(client.health()).rejects.toMatchObject({
    name: "KitError",
    code: "teapot",
    message: "No.",
    hint: "Do this.",
  });
});

test("a reply that does not come from kit becomes an error with its status", async () => {
  const page: Answer = (response) => response.writeHead(403).end("<html>Forbidden</html>");
  const { client } = await answering([page]);
  await expect(client.health()).rejects.toMatchObject({ code: "forbidden", meta: { status: 403 } });
  const html: Answer = (response) => response.end("<html>It works!</html>");
  const other = await answering([html], { retry: { attempts: 1 } });
  await expect(other.client.health()).rejects.toMatchObject({ code: "unavailable" });
  await expect(other.client.runs.stream("run_1").result()).rejects.toMatchObject({ code: "unavailable" });
});

test("a call fails after its time limit, and if there is no server", async () => {
  const { client } = await answering([silent], { timeoutMs: 50 });
  await expect(client.health()).rejects.toMatchObject({ code: "unavailable" });
  await expect(client.agents.invoke("a", { id: "1", message: "x" }, { timeoutMs: 20 })).rejects.toMatchObject(
    {
      code: "unavailable",
    },
  );
  const absent = new KitClient({ baseUrl: "http://127.0.0.1:1", retry: { attempts: 1 } });
  await expect(absent.health()).rejects.toMatchObject({ code: "unavailable" });
});

test("the client's signal ends all of its calls", async () => {
  const stop = new AbortController();
  const { client } = await answering([silent], { signal: stop.signal });
  const calls = [client.health(), client.agents.stream("a", { id: "1", message: "x" }).result()];
  const reason = new Error("unmounted");
  stop.abort(reason);
  for (const call of calls) await expect(call).rejects.toBe(reason);
});

test("headers, key and query arrive unchanged", async () => {
  const { client, requests } = await answering([ok], { apiKey: "k", headers: { "X-Tenant": "7" } });
  await client.runs.events("run_1", { types: ["log", "run_end"], after: 0 });
  const [request] = requests;
  expect(request?.url).toBe("/base/runs/run_1/events?types=log%2Crun_end&after=0");
  expect(request?.headers).toMatchObject({ authorization: "Bearer k", "x-tenant": "7" });
});

const event = (index: number, type = "idle"): string =>
  `id: ${index}\nevent: ${type}\ndata: ${JSON.stringify({ index, type })}\n\n`;
const streaming =
  (...parts: readonly string[]): Answer =>
  (response) => {
    response.writeHead(200, { "content-type": "text/event-stream" });
    response.write(parts.join(""));
  };

test("unknown event types and repeated events are skipped", async () => {
  const first: Answer = (response, request) => {
    streaming(event(1), event(2, "of_a_newer_kit"))(response, request);
    response.end();
  };
  const second = streaming(event(1), event(2), event(3), 'event: result\ndata: {"result":7}\n\n');
  const { client, requests } = await answering([first, second]);
  const stream = client.runs.stream("run_1");
  const seen: number[] = [];
  for await (const { index } of stream) seen.push(index);
  expect(seen).toEqual([1, 3]);
  expect(await stream.result()).toEqual({ result: 7 });
  expect(requests.map(({ headers }) => headers["last-event-id"])).toEqual([undefined, "2"]);
});

const failed = (error: object): string => `event: error\ndata: ${JSON.stringify({ error })}\n\n`;
const outage = failed({ type: "store_unavailable", message: "No.", meta: { retry_after_s: 0 } });
const cut = (...parts: readonly string[]): Answer => {
  const answer = streaming(...parts);
  return (response, request) => {
    answer(response, request);
    response.end();
  };
};

test("a stream that ends because a store is unavailable is resumed, also under a key, however often", async () => {
  const result = 'event: result\ndata: {"result":{"text":"hi"}}\n\n';
  const answers = Array.from({ length: 20 }, (_, n) => cut(event(2 * n + 1), event(2 * n + 2), outage));
  const read = await answering([...answers, cut(event(41), result)]);
  const stream = read.client.runs.stream("run_1");
  const seen: number[] = [];
  for await (const { index } of stream) seen.push(index);
  expect(seen).toEqual(Array.from({ length: 41 }, (_, n) => n + 1));
  const keyedCalls = await answering([cut(outage), ...answers, cut(result)]);
  const call = [{ id: "1", message: "x" }, { idempotencyKey: "k" }] as const;
  expect((await keyedCalls.client.agents.invoke("a", ...call)).text).toBe("hi");
  const positions = keyedCalls.requests.map(({ headers }) => headers["last-event-id"]);
  expect(positions.slice(0, 4)).toEqual([undefined, "0", "2", "4"]);
  const plain = await answering([cut(outage), cut(result)]);
  await expect(plain.client.agents.invoke("a", call[0])).rejects.toMatchObject({ code: "store_unavailable" });
});

test("work that has failed is not requested again, whatever its error", async () => {
  for (const meta of [{ run_id: "run_1" }, { dispatch_id: "d_1" }]) {
    const { client, requests } = await answering([
      cut(failed({ type: "unavailable", message: "No.", meta })),
    ]);
    await expect(client.runs.stream("run_1").result()).rejects.toMatchObject({ code: "unavailable", meta });
    expect(requests).toHaveLength(1);
  }
});

test("a call that a server refuses is repeated until its time limit, unless the number of attempts is set", async () => {
  const refusal = refuse(503, "store_unavailable", { "retry-after": "0" });
  const patient = await answering([...Array.from({ length: 9 }, () => refusal), ok]);
  await patient.client.agents.dispatch("a", { id: "1", input: "x" }, { idempotencyKey: "k" });
  expect(patient.requests).toHaveLength(10);
  const late = await answering([refusal]);
  // `unavailable` if the limit passes during an attempt.
  const call = [
    { id: "1", message: "x" },
    { idempotencyKey: "k", timeoutMs: 300 },
  ] as const;
  await expect(late.client.agents.stream("a", ...call).result()).rejects.toMatchObject({
    code: expect.stringMatching(/unavailable$/),
  });
  await expect(late.client.health({ timeoutMs: 300 })).rejects.toMatchObject({
    code: expect.stringMatching(/unavailable$/),
  });
  const limited = await answering([refusal], { retry: { attempts: 3, baseDelayMs: 1 } });
  await expect(limited.client.agents.stream("a", ...call).result()).rejects.toMatchObject({
    code: "store_unavailable",
  });
  expect(limited.requests).toHaveLength(3);
});

test("a silent stream is reconnected", async () => {
  const { client, requests } = await answering(
    [
      streaming(event(1)),
      streaming(event(2), 'event: error\ndata: {"error":{"type":"aborted","message":"No."}}\n\n'),
    ],
    { idleTimeoutMs: 1_000 },
  );
  await expect(client.runs.stream("run_1").result()).rejects.toMatchObject({ code: "aborted" });
  expect(requests).toHaveLength(2);
});

test("a stream ends after a 204 reply", async () => {
  const over: Answer = (response) => response.writeHead(204).end();
  const { client } = await answering([streaming(event(1)), over], { idleTimeoutMs: 1_000 });
  const seen: number[] = [];
  for await (const { index } of client.agents.events("a", { id: "1" })) seen.push(index);
  expect(seen).toEqual([1]);
});

test("a reader that stops reading closes the stream's connection", async () => {
  const closed = Promise.withResolvers<void>();
  const watched: Answer = (response, request) => {
    response.on("close", closed.resolve);
    streaming(event(1), event(2))(response, request);
  };
  const { client } = await answering([watched]);
  for await (const { index } of client.agents.events("a", { id: "1" })) {
    expect(index).toBe(1);
    break;
  }
  await closed.promise;
});
