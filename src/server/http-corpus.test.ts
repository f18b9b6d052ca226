import { readFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { errorCodes } from "../protocol/error-code.ts";
import { adapt, bodyOf, generate, type HttpCase } from "./testing/http-case.ts";
import { collectEvents, readEventStream } from "./testing/read-event-stream.ts";
import { sendRaw, sendRequest } from "./testing/send-request.ts";
import { canary, type ServerProcess, startServerProcess } from "./testing/server-process.ts";
import { serviceFiles } from "./testing/service-files.ts";
import { shopFiles } from "./testing/shop-files.ts";
import { signatureOf } from "./testing/sign-case.ts";
import { snapshotOf } from "./testing/snapshot.ts";
import { openSocket, RefusedError, type SocketClient } from "./testing/socket-client.ts";
import { type TemporaryProject, temporaryProject } from "./testing/temporary-project.ts";

const corpusFile = join(import.meta.dirname, "../../tests/security/http.json");
const cases: readonly HttpCase[] = JSON.parse(readFileSync(corpusFile, "utf8")).cases;
const apiKey = "an-api-key-for-the-corpus";

let shop: TemporaryProject;
let open: ServerProcess;
let guarded: ServerProcess;
let guideline = "";
let run = "";

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
});
afterAll(async () => {
  await Promise.all([open?.stop(), guarded?.stop()]);
  await shop?.remove();
});

describe("the corpus of hostile requests", () => {
  for (const one of cases.map(adapt)) {
    test(`${one.id} ${one.why}`, async () => await check(one));
  }

  test("a principal is kept from the instances of another tenant", async () => {
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
  const before = await snapshotOf(shop.root);
  const { pid, exitCode } = server.child;
  const { processorMs } = await server.state();
  await send(server, one);
  expect((await sendRequest(server.port, { path: "/health" })).status).toBe(200);
  expect([server.child.pid, server.child.exitCode]).toEqual([pid, exitCode]);
  expect(server.errors()).toBe("");
  const after = await server.state();
  expect(after.polluted).toBe(false);
  // What hangs ends with the time limit of the test.
  expect(after.processorMs - processorMs).toBeLessThan(one.max_ms ?? 2_000);
  expect(await snapshotOf(shop.root)).toEqual(before);
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
      return await (one.id === "ht-s-074" ? leaveStream(server, one) : readStream(server, one));
    case "http":
      return await (one.requires === "webhooks" ? deliver(server, one) : sendAndCheck(server, one));
  }
}

function fill(text: string, server: ServerProcess): string {
  return text
    .replace(/\$\{GUIDELINE\}/g, guideline)
    .replace(/\$\{AGENT\}/g, "echo")
    .replace(/\$\{STRICT\}/g, "strict")
    .replace(/\$\{WEBHOOK_(\w+)\}/g, (_, scheme: string) => `/webhooks/${scheme.toLowerCase()}`)
    .replace(/\$\{RUN\}/g, run)
    .replace(/\$\{HOST\}/g, `127.0.0.1:${server.port}`)
    .replace(/\$\{TOKEN\}/g, apiKey);
}

async function sendAndCheck(server: ServerProcess, one: HttpCase): Promise<void> {
  const body = bodyOf(one);
  const reply = await sendRequest(server.port, {
    method: one.method ?? "GET",
    path: fill(one.path ?? "", server),
    headers: { ...one.headers, ...signatureOf(one) },
    ...(body === undefined ? {} : { body: typeof body === "string" ? fill(body, server) : body }),
    ...(one.chunked === undefined ? {} : { chunked: one.chunked }),
  });
  const { expected } = one;
  expect(expected.status, reply.body.slice(0, 300)).toContain(reply.status);
  checkSecrets(JSON.stringify(reply));
  const isError = reply.status >= 400;
  const wantsEnvelope =
    expected.envelope === true ||
    (expected.envelope === "if_error" && isError) ||
    (expected.envelope === "if_body" && isError && reply.body !== "");
  if (wantsEnvelope) {
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

async function deliver(server: ServerProcess, one: HttpCase): Promise<void> {
  const count = async (): Promise<number> =>
    JSON.parse((await sendRequest(server.port, { path: "/dispatches" })).body).dispatches.length;
  const before = await count();
  await sendAndCheck(server, one);
  expect((await count()) - before).toBe(one.expected.no_dispatch === true ? 0 : one.expected.dispatches);
}

function checkEnvelope(body: string, types: readonly string[] = []): void {
  const { error } = JSON.parse(body);
  expect(error).toMatchObject({
    type: expect.stringMatching(/^[a-z][a-z0-9_]*$/),
    message: expect.any(String),
  });
  expect(error.details).toEqual(expect.any(String));
  // The corpus names some types that the contract has under other names.
  if (types.every((type) => Object.hasOwn(errorCodes, type)) && types.length > 0)
    expect(types).toContain(error.type);
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
  const events = await collectEvents(reply);
  expect(events.at(-1)?.event).toBe("result");
  expect(events.map(({ event }) => event)).not.toContain(one.expected.sse_no_event);
  checkSecrets(JSON.stringify(events));
}

/** Goes away after the first byte: the work ends, and so does every connection. */
async function leaveStream(server: ServerProcess, one: HttpCase): Promise<void> {
  const { sockets } = await server.state();
  const gone = new AbortController();
  const reply = await openStream(server, one, gone.signal);
  expect(one.expected.status).toContain(reply.status);
  await reply.body?.getReader().read();
  gone.abort();
  const watching = new AbortController();
  const events = await fetch(`http://127.0.0.1:${server.port}${fill(one.path ?? "", server)}/events`, {
    signal: AbortSignal.any([watching.signal, AbortSignal.timeout(10_000)]),
  });
  for await (const { event } of readEventStream(events)) if (event === "aborted") break;
  watching.abort();
  while ((await server.state()).sockets > sockets) await new Promise((resolve) => setImmediate(resolve));
}

function openStream(server: ServerProcess, one: HttpCase, signal?: AbortSignal): Promise<Response> {
  return fetch(`http://127.0.0.1:${server.port}${fill(one.path ?? "", server)}`, {
    method: one.method ?? "GET",
    headers: { ...one.headers },
    ...(one.body === undefined ? {} : { body: one.body }),
    ...(signal === undefined ? {} : { signal }),
  });
}

async function sendFrames(server: ServerProcess, one: HttpCase): Promise<void> {
  const { expected, headers = {} } = one;
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
  for (const { text, text_gen } of one.frames ?? []) client.send(text ?? generate(text_gen ?? ""));
  if (expected.ws?.close !== undefined) return expect(expected.ws.close).toContain(await client.closed);
  const { error } = (await client.until("error")).at(-1);
  checkEnvelope(JSON.stringify({ error }));
  client.socket.close();
}

function checkSecrets(text: string): void {
  expect(text).not.toContain(canary);
  expect(text).not.toContain(apiKey);
  expect(text).not.toContain(shop.root);
  expect(text).not.toMatch(/node_modules|\n\s+at |\.ts:\d+:\d+/);
}
