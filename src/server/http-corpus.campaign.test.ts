import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { generate, isForThisSystem } from "../../tests/security/corpus.ts";
import {
  adapt,
  bodyOf,
  type HttpCase,
  type HttpFrame,
  readHttpCases,
  signatureOf,
} from "../../tests/security/http-cases.ts";
import { errorCodes } from "../protocol/error-code.ts";
import { isCampaign } from "../testing/campaign.suite.ts";
import { collectEvents, readEventStream } from "./testing/read-event-stream.ts";
import { sendRaw, sendRequest } from "./testing/send-request.ts";
import { canary, type ServerProcess, startServerProcess } from "./testing/server-process.ts";
import { serviceFiles, webhookSecrets } from "./testing/service-files.ts";
import { shopFiles } from "./testing/shop-files.ts";
import { snapshotOf } from "./testing/snapshot.ts";
import { openSocket, RefusedError, type SocketClient } from "./testing/socket-client.ts";
import { type TemporaryProject, temporaryProject } from "./testing/temporary-project.ts";

const { cases } = readHttpCases();
const apiKey = "an-api-key-for-the-corpus";

let shop: TemporaryProject;
let open: ServerProcess;
let guarded: ServerProcess;
let guideline = "";
let run = "";
let routes: readonly string[] = [];

/** As `serve-process.ts` sets it. */
const requestTimeoutMs = 1_500;

beforeAll(async () => {
  shop = await temporaryProject({ ...shopFiles, ...serviceFiles });
  [open, guarded] = await Promise.all([
    startServerProcess(shop.root),
    startServerProcess(shop.root, [apiKey]),
  ]);
  guideline = shop.project.guidelines.list({}).guidelines[0]?.id ?? "";
  const started = await fetch(`http://127.0.0.1:${open.port}/workflows/strict?wait=result`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: '{"n":1}',
  });
  run = JSON.parse(await started.text()).run_id;
  const described = await sendRequest(open.port, { path: "/openapi.json" });
  routes = Object.keys(JSON.parse(described.body).paths);
  for (const server of [open, guarded]) await history(server, { method: "POST" });
});
afterAll(async () => {
  await Promise.all([open?.stop(), guarded?.stop()]);
  await shop?.remove();
});

describe("the corpus of hostile requests", () => {
  for (const [index, one] of cases.map(adapt).entries()) {
    if (!isCampaign && index % 3 !== 0) continue;
    test.skipIf(!isForThisSystem(one))(`${one.id} ${one.why}`, async () => await check(one));
  }

  test("a principal cannot reach the instances of another tenant", async () => {
    const headers = { authorization: `Bearer ${apiKey}`, "content-type": "application/json" };
    for (const [id, status] of [
      ["other-tenant-1", 403],
      ["own-1", 200],
    ] as const) {
      const path = `/agents/echo/${id}`;
      const reply = await sendRequest(guarded.port, {
        method: "POST",
        path,
        headers,
        body: '{"message":"hi"}',
      });
      expect([id, reply.status]).toEqual([id, status]);
    }
  });
});

async function check(one: HttpCase): Promise<void> {
  const server = one.requires === "auth" ? guarded : open;
  checkRoute(one);
  const before = await snapshotOf(shop.root);
  const { pid, exitCode } = server.child;
  const { processorMs } = await server.state();
  const messages = await history(server);
  const accepted = await countDispatches(server);
  const started = performance.now();
  for (let time = 0; time < (one.send_times ?? 1); time += 1) await send(server, one);
  const { within_ms } = one.expected;
  if (within_ms !== undefined) expect(performance.now() - started).toBeLessThan(millisecondsOf(within_ms));
  expect((await sendRequest(server.port, { path: "/health" })).status).toBe(200);
  expect([server.child.pid, server.child.exitCode]).toEqual([pid, exitCode]);
  expect(server.errors()).toBe("");
  const after = await server.state();
  expect(after.polluted).toBe(false);
  // A request that hangs ends with the time limit of the test.
  expect(after.processorMs - processorMs).toBeLessThan(one.max_ms ?? 2_000);
  expect(await snapshotOf(shop.root)).toEqual(before);
  if (one.expected.session_isolated === true) expect(await history(server)).toEqual(messages);
  const inputs = one.expected.no_dispatch === true ? 0 : one.expected.dispatches;
  if (inputs !== undefined) expect((await countDispatches(server)) - accepted).toBe(inputs);
}

/** A case that needs a route is not left out where it is not there: then it is the route that is missing. */
function checkRoute({ requires }: HttpCase): void {
  if (requires?.startsWith("route:") !== true) return;
  const plain = (path: string): string => path.replace(/\{[^}]*\}/g, "{}");
  const required = plain(requires.slice("route:".length));
  expect(
    routes.map(plain).filter((path) => path === required || path.startsWith(`${required}/`)),
  ).not.toEqual([]);
}

function millisecondsOf(text: number | string): number {
  return typeof text === "number" ? text : requestTimeoutMs + Number(text.split("+")[1]);
}

const keyOf = (server: ServerProcess): Readonly<Record<string, string>> =>
  server === guarded ? { authorization: `Bearer ${apiKey}` } : {};

async function countDispatches(server: ServerProcess): Promise<number> {
  const reply = await sendRequest(server.port, { path: "/dispatches", headers: keyOf(server) });
  return JSON.parse(reply.body).dispatches.length;
}

/** The history of another client; with POST, after a prompt. */
async function history(server: ServerProcess, { method = "GET" } = {}): Promise<string> {
  const headers = { ...keyOf(server), "content-type": "application/json" };
  const path = "/agents/echo/another-client";
  if (method === "POST")
    await sendRequest(server.port, { method, path, headers, body: '{"message":"mine"}' });
  return (await sendRequest(server.port, { path: `${path}/history`, headers })).body;
}

async function send(server: ServerProcess, one: HttpCase): Promise<void> {
  switch (one.transport) {
    case "raw": {
      const raw = one.raw ?? generate(one.raw_gen ?? "");
      return checkRaw(await sendRaw(server.port, fill(raw, server)), one);
    }
    case "ws":
      return await sendFrames(server, one);
    case "sse":
      return await (one.abort_after_bytes === undefined ? readStream(server, one) : leaveStream(server, one));
    case "http":
      return await sendAndCheck(server, one);
  }
}

function fill(text: string, server: ServerProcess): string {
  const values: Readonly<Record<string, string>> = {
    GUIDELINE: guideline,
    AGENT: "echo",
    STRICT: "strict",
    SLOW: "slow",
    WEBHOOK_GITHUB: "/webhooks/github",
    WEBHOOK_STANDARD: "/webhooks/standard",
    WEBHOOK_SLACK: "/webhooks/slack",
    GHSECRET: webhookSecrets.github,
    WHSEC: webhookSecrets.standard,
    SLACKSECRET: webhookSecrets.slack,
    RUN: run,
    HOST: `127.0.0.1:${server.port}`,
    TOKEN: apiKey,
  };
  return text.replace(/\$\{([A-Z_]+)\}/g, (_, name: string) => {
    const value = Object.hasOwn(values, name) ? values[name] : undefined;
    if (value === undefined) throw new Error(`The corpus has a variable that is new: ${name}.`);
    return value;
  });
}

function filledHeaders(server: ServerProcess, { headers = {} }: HttpCase): Record<string, string> {
  return Object.fromEntries(Object.entries(headers).map(([name, value]) => [name, fill(value, server)]));
}

/** The body with its variables filled in, and the headers with the signature over just that. */
function messageOf(server: ServerProcess, one: HttpCase) {
  const given = bodyOf(one);
  const body = typeof given === "string" ? fill(given, server) : given;
  const signature = signatureOf(one, body ?? "", (text) => fill(text, server));
  return { body, headers: { ...filledHeaders(server, one), ...signature } };
}

async function sendAndCheck(server: ServerProcess, one: HttpCase): Promise<void> {
  const { body, headers } = messageOf(server, one);
  const reply = await sendRequest(server.port, {
    method: one.method ?? "GET",
    path: fill(one.path ?? "", server),
    headers,
    ...(body === undefined ? {} : { body }),
    ...(one.chunked === undefined ? {} : { chunked: one.chunked }),
  });
  const { expected } = one;
  expect(expected.status, reply.body.slice(0, 300)).toContain(reply.status);
  checkSecrets(JSON.stringify(reply));
  const isError = reply.status >= 400;
  const expectsEnvelope =
    expected.envelope === true ||
    (expected.envelope === "if_error" && isError) ||
    (expected.envelope === "if_body" && isError && reply.body !== "");
  if (expectsEnvelope) {
    expect(reply.headers["content-type"]).toContain("application/json");
    checkEnvelope(reply.body, expected.error_type_any_of);
  }
  if (expected.no_header !== undefined) expect(reply.headers).not.toHaveProperty(expected.no_header);
  for (const [name, value] of Object.entries(expected.header ?? {}))
    expect(reply.headers[name]).toContain(value);
  for (const [name, values] of Object.entries(expected.no_header_value ?? {})) {
    expect(values).not.toContain(reply.headers[name]);
  }
}

function checkEnvelope(body: string, types: readonly string[] = []): void {
  const { error } = JSON.parse(body);
  expect(error).toMatchObject({
    type: expect.stringMatching(/^[a-z][a-z0-9_]*$/),
    message: expect.any(String),
  });
  expect(error.details).toEqual(expect.any(String));
  // The files name some types that the contract has under other names.
  const knownTypes = types.filter((type) => Object.hasOwn(errorCodes, type));
  if (knownTypes.length > 0) expect(knownTypes).toContain(error.type);
}

function checkRaw(reply: string, { expected }: HttpCase): void {
  const status = /^HTTP\/1\.1 (\d{3})/.exec(reply)?.[1];
  expect(expected.status, reply.slice(0, 300)).toContain(status === undefined ? "closed" : Number(status));
  // One request, one reply: what came after a smuggled end was never read as a request.
  expect(reply.match(/^HTTP\/1\.1 /gm)?.length ?? 0).toBeLessThan(2);
  checkSecrets(reply);
}

async function readStream(server: ServerProcess, one: HttpCase): Promise<void> {
  const reply = await openStream(server, one);
  expect(one.expected.status).toContain(reply.status);
  if (reply.status !== 200) return checkEnvelope(await reply.text(), one.expected.error_type_any_of);
  const events = await collectEvents(reply);
  expect(events.at(-1)?.event).toBe("result");
  expect(events.map(({ event }) => event)).not.toContain(one.expected.sse_no_event);
  checkSecrets(JSON.stringify(events));
}

/** Goes away after some bytes: the work ends, and so does every connection. */
async function leaveStream(server: ServerProcess, one: HttpCase): Promise<void> {
  const { sockets } = await server.state();
  const gone = new AbortController();
  const reply = await openStream(server, one, gone.signal);
  expect(one.expected.status).toContain(reply.status);
  const reader = reply.body?.getReader();
  for (let bytes = 0; bytes < Math.max(1, one.abort_after_bytes ?? 1); ) {
    const { value, done } = (await reader?.read()) ?? { done: true };
    if (done === true) break;
    bytes += value?.length ?? 0;
  }
  gone.abort();
  const [, limit = "10000"] = /:(\d+)/.exec(one.expected.then?.join() ?? "") ?? [];
  const watching = new AbortController();
  const events = await fetch(`http://127.0.0.1:${server.port}${fill(one.path ?? "", server)}/events`, {
    signal: AbortSignal.any([watching.signal, AbortSignal.timeout(Number(limit))]),
  });
  for await (const { event } of readEventStream(events)) if (event === "aborted") break;
  watching.abort();
  while ((await server.state()).sockets > sockets) await new Promise((resolve) => setImmediate(resolve));
}

function openStream(server: ServerProcess, one: HttpCase, signal?: AbortSignal): Promise<Response> {
  const { body, headers } = messageOf(server, one);
  return fetch(`http://127.0.0.1:${server.port}${fill(one.path ?? "", server)}`, {
    method: one.method ?? "GET",
    headers,
    ...(body === undefined ? {} : { body: typeof body === "string" ? body : Buffer.from(body) }),
    ...(signal === undefined ? {} : { signal }),
  });
}

async function sendFrames(server: ServerProcess, one: HttpCase): Promise<void> {
  const { expected } = one;
  const headers = filledHeaders(server, one);
  const url = `http://127.0.0.1:${server.port}${fill(one.path ?? "", server)}`;
  let client: SocketClient;
  try {
    client = await openSocket(url, { headers });
  } catch (error) {
    if (!(error instanceof RefusedError)) throw error;
    expect(expected.status).toContain(error.status);
    if (error.body !== "") checkEnvelope(error.body, expected.error_type_any_of);
    return checkSecrets(error.body);
  }
  expect(expected.status).toContain(101);
  for (const frame of one.frames ?? []) sendFrame(client, frame, server);
  const { close, error_frame_or_close } = expected.ws ?? {};
  if (close !== undefined) return expect(close).toContain(await client.closed);
  if (error_frame_or_close !== undefined) {
    const answer = await client.until("error").then(
      (frames) => frames.at(-1),
      () => undefined,
    );
    if (answer === undefined) expect(error_frame_or_close).toContain(await client.closed);
    else checkEnvelope(JSON.stringify({ error: answer.error }), expected.error_type_any_of);
    checkSecrets(JSON.stringify(answer ?? {}));
  }
  client.socket.close();
}

function sendFrame({ socket }: SocketClient, frame: HttpFrame, server: ServerProcess): void {
  const bytes = (hex: string): Buffer => Buffer.from(hex.replace(/\s/g, ""), "hex");
  if ("text" in frame) socket.send(fill(frame.text, server));
  else if ("text_gen" in frame) socket.send(generate(frame.text_gen));
  else if ("hex" in frame) socket.send(bytes(frame.hex), { binary: true });
  // A text frame whose bytes need not be UTF-8.
  else if ("text_hex" in frame) socket.send(bytes(frame.text_hex), { binary: false });
  else Reflect.get(socket, "_socket").write(bytes(frame.raw_hex));
}

function checkSecrets(text: string): void {
  expect(text).not.toContain(canary);
  expect(text).not.toContain(apiKey);
  expect(text).not.toContain(shop.root);
  expect(text).not.toMatch(/node_modules|\n\s+at |\.ts:\d+:\d+/);
}
