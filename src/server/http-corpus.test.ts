import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { adapt, type HttpCase } from "./testing/http-case.ts";
import { sendRaw, sendRequest } from "./testing/send-request.ts";
import { canary, type ServerProcess, startServerProcess } from "./testing/server-process.ts";
import { shopFiles } from "./testing/shop-files.ts";
import { snapshotOf } from "./testing/snapshot.ts";
import { type TemporaryProject, temporaryProject } from "./testing/temporary-project.ts";

// The corpus lies beside a checkout in some places only.
const corpusFile = join(import.meta.dirname, "../../../shared/security/http.json");
const cases: readonly HttpCase[] = existsSync(corpusFile)
  ? JSON.parse(readFileSync(corpusFile, "utf8")).cases
  : [];
const apiKey = "an-api-key-for-the-corpus";

let shop: TemporaryProject;
let open: ServerProcess;
let guarded: ServerProcess;
let guideline = "";

beforeAll(async () => {
  if (cases.length === 0) return;
  shop = await temporaryProject(shopFiles);
  [open, guarded] = await Promise.all([
    startServerProcess(shop.root),
    startServerProcess(shop.root, [apiKey]),
  ]);
  guideline = shop.project.guidelines.list({}).guidelines[0]?.id ?? "";
});
afterAll(async () => {
  await Promise.all([open?.stop(), guarded?.stop()]);
  await shop?.remove();
});

describe.skipIf(cases.length === 0)("the corpus of hostile requests", () => {
  for (const one of cases) {
    const adapted = adapt(one);
    if ("skip" in adapted) test.skip(`${one.id} ${one.why} [${adapted.skip}]`, () => undefined);
    else test(`${one.id} ${one.why} [on ${adapted.on}]`, async () => await run(adapted.sent));
  }

  test("most cases are about these routes", () => {
    expect(cases.filter((one) => "sent" in adapt(one)).length).toBeGreaterThan(55);
  });
});

async function run(one: HttpCase): Promise<void> {
  const server = one.requires === "auth" ? guarded : open;
  const before = await snapshotOf(shop.root);
  const { pid, exitCode } = server.child;
  const started = performance.now();
  if (one.transport === "raw")
    checkRaw(await sendRaw(server.port, fill(one.raw ?? "", server), { silenceMs: 8_000 }), one);
  else await sendAndCheck(server, one);
  expect(performance.now() - started).toBeLessThan(one.max_ms ?? (one.class === "slow" ? 6_500 : 2_000));

  const healthStarted = performance.now();
  expect((await sendRequest(server.port, { path: "/health" })).status).toBe(200);
  expect(performance.now() - healthStarted).toBeLessThan(1_000);
  expect([server.child.pid, server.child.exitCode]).toEqual([pid, exitCode]);
  expect(server.errors()).toBe("");
  expect(await snapshotOf(shop.root)).toEqual(before);
}

function fill(text: string, server: ServerProcess): string {
  return text
    .replace(/\$\{GUIDELINE\}/g, guideline)
    .replace(/\$\{HOST\}/g, `127.0.0.1:${server.port}`)
    .replace(/\$\{TOKEN\}/g, apiKey);
}

async function sendAndCheck(server: ServerProcess, one: HttpCase): Promise<void> {
  const bytes = one.body_b64 === undefined ? undefined : Buffer.from(one.body_b64, "base64");
  const body = bytes ?? (one.body === undefined ? undefined : fill(one.body, server));
  const reply = await sendRequest(server.port, {
    method: one.method ?? "GET",
    path: fill(one.path ?? "", server),
    headers: one.headers ?? {},
    ...(body === undefined ? {} : { body }),
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
    const { error } = JSON.parse(reply.body);
    expect(error).toMatchObject({
      type: expect.stringMatching(/^[a-z][a-z0-9_]*$/),
      message: expect.any(String),
    });
    expect(error.details).toEqual(expect.any(String));
    const types = expected.error_type_any_of?.filter((type) => !/^(agent|workflow|run)_/.test(type)) ?? [];
    if (types.length > 0) expect(types).toContain(error.type);
  }
  if (expected.no_header !== undefined) expect(reply.headers).not.toHaveProperty(expected.no_header);
  for (const [name, value] of Object.entries(expected.header ?? {}))
    expect(reply.headers[name]).toContain(value);
  for (const [name, values] of Object.entries(expected.no_header_value ?? {})) {
    expect(values).not.toContain(reply.headers[name]);
  }
}

function checkRaw(reply: string, { expected }: HttpCase): void {
  const status = /^HTTP\/1\.1 (\d{3})/.exec(reply)?.[1];
  expect(expected.status, reply.slice(0, 300)).toContain(status === undefined ? "closed" : Number(status));
  // One request, one reply: what came after a smuggled end was never read as a request.
  expect(reply.match(/^HTTP\/1\.1 /gm)?.length ?? 0).toBeLessThan(2);
  checkSecrets(reply);
}

function checkSecrets(text: string): void {
  expect(text).not.toContain(canary);
  expect(text).not.toContain(apiKey);
  expect(text).not.toContain(shop.root);
  expect(text).not.toMatch(/node_modules|\n\s+at |\.ts:\d+:\d+/);
}
