import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout } from "node:timers/promises";
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { createAgent } from "../../agents/define/create-agent.ts";
import type { ApplicationData } from "../../app/service/open-application.ts";
import { type PostgresServer, startPostgres } from "../../testing/postgres-server.ts";
import { createScriptedModel } from "../../testing/scripted-model.ts";
import { defineWorkflow } from "../../workflows/define-workflow.ts";
import { netlifyFunction, netlifySchedule } from "./netlify.ts";
import { vercelFunction } from "./vercel.ts";

let postgres: PostgresServer;
const before = process.cwd();
const { env } = process;
const savedEnvironment = { ...env };
const temporary = mkdtempSync(join(tmpdir(), "kit-function-test-"));
const secret = "secret-of-the-schedule-1";

beforeAll(async () => {
  postgres = await startPostgres();
});

beforeEach(() => {
  Object.assign(env, {
    ...savedEnvironment,
    TMPDIR: temporary,
    KIT_API_KEYS: "key-1",
    DATABASE_URL: postgres.url,
  });
  env.CRON_SECRET = secret;
});

afterAll(async () => {
  process.chdir(before);
  for (const name of ["KIT_API_KEYS", "DATABASE_URL", "CRON_SECRET", "TMPDIR"]) delete env[name];
  Object.assign(env, savedEnvironment);
  await postgres?.stop();
  rmSync(temporary, { recursive: true, force: true });
});

/** Milliseconds after which the model of the application answers. */
let answersAfter = 0;
const model = createScriptedModel(async ({ abortSignal: signal }) => {
  await setTimeout(answersAfter, undefined, signal === undefined ? {} : { signal });
  return { text: "An answer." };
});

const application = (): ApplicationData => ({
  name: "shop",
  files: { "AGENTS.md": "# Rules\n\nAmounts are whole cents.\n" },
  modules: {
    "kit.config.ts": async () => ({ default: { server: { expose: "all" } } }),
    "src/agents/helper.ts": async () => ({ default: createAgent({ model }) }),
    "src/workflows/add.ts": async () => ({ default: defineWorkflow({ run: async () => 3 }) }),
  },
});

const host = "https://shop.example";

function toRequest(path: string, body?: unknown, headers: Readonly<Record<string, string>> = {}): Request {
  return new Request(`${host}${path}`, {
    method: body === undefined ? "GET" : "POST",
    headers: { Authorization: "Bearer key-1", "Content-Type": "application/json", ...headers },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
}

/** One call of a Netlify function; resolves with the reply and, once all that was promised to be waited for has ended, its end. */
async function call(
  request: Request,
  { seconds = 20, waits = true } = {},
): Promise<{ readonly status: number; readonly text: string; readonly over: Promise<unknown> }> {
  const promised: Promise<unknown>[] = [];
  const context = waits ? { waitUntil: (work: Promise<unknown>) => void promised.push(work) } : {};
  const reply = await netlifyFunction(application, { seconds })(request, context);
  const text = await reply.text();
  return { status: reply.status, text, over: Promise.all(promised) };
}

const recordOf = async (id: string): Promise<{ readonly status: string; readonly attempts: number }> =>
  JSON.parse((await call(toRequest(`/dispatches/${id}`))).text);

test("without a key the function answers no request, and names the variable to set", async () => {
  delete env.KIT_API_KEYS;
  const { status, text } = await call(toRequest("/health"));
  expect(status).toBe(503);
  expect(text).toContain("KIT_API_KEYS");
});

test("without a database specs and guidelines are served, and work is refused as unavailable with the reason", async () => {
  delete env.DATABASE_URL;
  const specs = await call(toRequest("/api/specs"));
  expect(specs.status, specs.text).toBe(200);
  expect((await call(toRequest("/agents"))).status).toBe(200);
  const works = [
    toRequest("/agents/helper/1", { message: "Hello" }),
    toRequest("/agents/helper/1/dispatch", { input: "Hello" }),
    toRequest("/workflows/add", {}),
    toRequest("/health"),
  ];
  for (const request of works) {
    const { status, text } = await call(request);
    expect([status, JSON.parse(text).error.type]).toEqual([503, "unavailable"]);
    expect(text).toContain("database");
  }
  expect((await netlifySchedule(application, { seconds: 20 })()).status).toBe(503);
});

test("the scheduled call of Vercel needs its secret", async () => {
  const { fetch } = vercelFunction(application, { seconds: 20 });
  const at = async (headers: Readonly<Record<string, string>>): Promise<number> =>
    (await fetch(new Request(`${host}/_kit/work`, { headers }))).status;
  expect(await at({})).toBe(401);
  expect(await at({ Authorization: "Bearer key-1" })).toBe(401);
  expect(await at({ Authorization: `Bearer ${secret}` })).toBe(200);
  env.CRON_SECRET = " ";
  expect(await at({ Authorization: "Bearer " })).toBe(503);
});

test("a prompt that exceeds the platform's time limit is answered before the limit, as JSON and as a stream", async () => {
  answersAfter = 10_000;
  const started = performance.now();
  const [plain, streamed] = await Promise.all([
    call(toRequest("/agents/helper/late", { message: "Hello" }), { seconds: 8 }),
    call(toRequest("/agents/helper/later", { message: "Hello" }, { Accept: "text/event-stream" }), {
      seconds: 8,
    }),
  ]);
  expect(plain.status).toBe(503);
  expect(plain.text).toContain("Idempotency-Key");
  expect(streamed.text).toMatch(/event: error\n.*Idempotency-Key/s);
  await Promise.all([plain.over, streamed.over]);
  expect(performance.now() - started).toBeLessThan(9_000);
});

test("a longer dispatch is handed over without counting an attempt, and a scheduled call finishes it", async () => {
  answersAfter = 10_000;
  const { status, text, over } = await call(toRequest("/agents/helper/long/dispatch", { input: "Hello" }), {
    seconds: 2,
  });
  expect(status).toBe(202);
  const { dispatch_id } = JSON.parse(text);
  await over;
  expect(await recordOf(dispatch_id)).toMatchObject({ status: "queued", attempts: 0 });
  answersAfter = 0;
  expect((await netlifySchedule(application, { seconds: 20 })()).status).toBe(200);
  expect(await recordOf(dispatch_id)).toMatchObject({ status: "completed", attempts: 1 });
});

test("on a platform that freezes a process after its reply, a dispatch is accepted, and a scheduled call runs it", async () => {
  answersAfter = 200;
  const { status, text } = await call(toRequest("/agents/helper/frozen/dispatch", { input: "Hello" }), {
    waits: false,
  });
  expect(status).toBe(202);
  const { dispatch_id } = JSON.parse(text);
  expect(await recordOf(dispatch_id)).toMatchObject({ status: "queued" });
  await netlifySchedule(application, { seconds: 20 })();
  expect(await recordOf(dispatch_id)).toMatchObject({ status: "completed" });
});

test("parallel calls of a process share its resources, and the last one releases them", async () => {
  answersAfter = 50;
  const serve = netlifyFunction(application, { seconds: 20 });
  const promised: Promise<unknown>[] = [];
  const context = { waitUntil: (work: Promise<unknown>) => void promised.push(work) };
  const replies = await Promise.all(
    ["a", "b", "c", "d"].map(
      async (id) => await serve(toRequest(`/agents/helper/${id}`, { message: "Hello" }), context),
    ),
  );
  for (const reply of replies) expect(await reply.json()).toMatchObject({ result: { text: "An answer." } });
  await Promise.all(promised);
  const again = await serve(toRequest("/agents/helper/a/history"), context);
  const { messages } = (await again.json()) as { readonly messages: readonly unknown[] };
  expect(messages).toHaveLength(2);
});
