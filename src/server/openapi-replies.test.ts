import { createHmac } from "node:crypto";
import { Ajv2020, type ValidateFunction } from "ajv/dist/2020.js";
import formats from "ajv-formats";
import { beforeAll, expect, test } from "vitest";
import { readEventStream } from "./testing/read-event-stream.ts";
import { serveForTest, serveForTests } from "./testing/serve-for-tests.ts";
import type { SentJson } from "./testing/serve-service.ts";
import { webhookSecrets } from "./testing/service-files.ts";

interface Description {
  readonly responses: Readonly<
    Record<
      string,
      { readonly description: string; readonly content: Record<string, { readonly schema: object }> }
    >
  >;
}

let ajv: Ajv2020;
const operations = new Map<string, Description>();
/** Operations of which a reply that is not an error was seen. */
const answered = new Set<string>();

const served = serveForTests({
  files: {
    "kit.toml": '[agent.approvals]\ntools = ["pay"]\n',
    "src/agents/paying.ts": `export const triggers = { webhook: true };
const pay = { name: "pay", description: "Pays.", input: { type: "object" }, execute: () => "Paid." };
export default { kind: "kit.agent", describe: async () => ({ tools: [pay] }) };
`,
  },
});
beforeAll(async () => {
  const { body } = await served.send("/openapi.json");
  ajv = new Ajv2020({ strict: true, strictTypes: false, allErrors: true });
  formats.default(ajv);
  ajv.addSchema({ $id: "kit:openapi", components: body.components }).addVocabulary(["components"]);
  for (const [path, methods] of Object.entries<Record<string, Description>>(body.paths)) {
    for (const [method, operation] of Object.entries(methods)) {
      operations.set(`${method.toUpperCase()} ${path}`, operation);
    }
  }
});

const validators = new Map<string, ValidateFunction>();

/** The faults of a value by a schema of the description. */
function faultsOf(schema: object | undefined, value: unknown): unknown {
  if (schema === undefined) return "no schema";
  const absolute = JSON.stringify(schema).replaceAll('"#/components/', '"kit:openapi#/components/');
  const validate = validators.get(absolute) ?? ajv.compile(JSON.parse(absolute));
  validators.set(absolute, validate);
  return validate(value) ? undefined : validate.errors;
}

/** Sends a request, and holds the reply against what the description says of the operation. */
// biome-ignore lint/suspicious/noExplicitAny: a test looks into whatever was sent.
async function ask(operation: string, path: string, sent: SentJson = {}): Promise<any> {
  const [method = ""] = operation.split(" ");
  const reply = await served.send(path, { method, ...sent });
  const described = operations.get(operation)?.responses[reply.status];
  const operationReply = `${operation} ${reply.status} ${JSON.stringify(reply.body).slice(0, 300)}`;
  expect(
    faultsOf(described?.content["application/json"]?.schema, reply.body),
    operationReply,
  ).toBeUndefined();
  // Errors of other protocols have their own form.
  if (reply.status >= 400 && !/ \/(?:v1\/|mcp$|a2a\/\{name\}$)/.test(operation))
    expect(described?.description.split(", "), operationReply).toContain(reply.body.error.type);
  if (reply.status < 400) answered.add(operation);
  return reply.body;
}

/** Asks for a stream to its end, or its first `count` events, and holds what comes against the description. */
async function follow(operation: string, path: string, sent: SentJson & { readonly until?: number } = {}) {
  const [method = ""] = operation.split(" ");
  const reply = await served.stream(path, { method, ...sent });
  const described = operations.get(operation)?.responses[reply.status]?.content ?? {};
  expect([operation, Object.keys(described)]).toEqual([
    operation,
    expect.arrayContaining(["text/event-stream"]),
  ]);
  const event = { $ref: "#/components/schemas/Event" };
  let count = 0;
  for await (const { id, event: type, data } of readEventStream(reply)) {
    if (id === undefined) {
      const schema = { $ref: `#/components/schemas/${type === "error" ? "Error" : resultOf[operation]}` };
      expect([operation, faultsOf(schema, data)]).toEqual([operation, undefined]);
    } else expect([operation, type, faultsOf(event, data)]).toEqual([operation, type, undefined]);
    count += 1;
    if (Number(id) === sent.until) break;
  }
  expect(count).toBeGreaterThan(0);
  answered.add(operation);
}

const resultOf: Readonly<Record<string, string>> = {
  "POST /agents/{name}/{id}": "PromptReply",
  "POST /prompt/{session}/events": "PromptReply",
  "POST /workflows/{name}": "RunCompleted",
  "GET /runs/{run_id}/stream": "RunCompleted",
};

test("specs, guidelines and the service answer as described", async () => {
  await ask("GET /", "/", { headers: { accept: "application/json" } });
  await ask("GET /health", "/health");
  await ask("GET /health/live", "/health/live");
  await ask("GET /server", "/server");
  await ask("GET /cluster", "/cluster");
  await ask("GET /openapi.json", "/openapi.json");
  const { specs } = await ask("GET /api/specs", "/api/specs?limit=5");
  await ask("GET /api/specs", "/api/specs?limit=0");
  await ask("GET /api/specs/{id}", `/api/specs/${encodeURIComponent(specs[0].id)}`);
  await ask("GET /api/specs/{id}", "/api/specs/none");
  await ask("GET /api/specs/graph", "/api/specs/graph");
  await ask("GET /api/specs/diagnostics", "/api/specs/diagnostics");
  const { features } = await ask("GET /api/specs/features", "/api/specs/features");
  const [{ framework, feature }] = features;
  await ask(
    "GET /api/specs/outline",
    `/api/specs/outline?framework=${framework}&feature=${encodeURIComponent(feature)}`,
  );
  await ask("POST /api/specs/impact", "/api/specs/impact", { body: { ids: [specs[0].id], graph: true } });
  await ask("POST /api/specs/impact", "/api/specs/impact", { body: { ids: ["none"] } });
  await ask("GET /api/specs/coverage", "/api/specs/coverage?limit=2");
  await ask("GET /api/specs/coverage", "/api/specs/coverage?limit=0");
  const results = "POST /api/specs/results";
  const report = '<testsuite><testcase name="a" file="src/agents/echo.ts"/></testsuite>';
  await ask(results, "/api/specs/results", { body: { report } });
  await ask(results, "/api/specs/results", { body: { report: "<testsuite>" } });
  await ask("GET /api/specs/history", "/api/specs/history?criterion=auth%231.1");
  await ask("GET /api/specs/history", "/api/specs/history");
  await ask("GET /api/specs/stale", "/api/specs/stale");
  await ask("GET /api/specs/stale", "/api/specs/stale?cursor=none");
  await ask("POST /api/specs/validate", "/api/specs/validate", { body: { blocks: [{}, specs[0]] } });
  const { guidelines } = await ask("GET /api/guidelines", "/api/guidelines?limit=1");
  const [{ id }] = guidelines;
  await ask("GET /api/guidelines/{id}", `/api/guidelines/${id}`);
  await ask("GET /api/guidelines/{id}", "/api/guidelines/none");
  const convert = "POST /api/guidelines/convert";
  await ask(convert, "/api/guidelines/convert", { body: { guideline_id: id, format: "fw_b" } });
  await ask(convert, "/api/guidelines/convert", { body: { guideline_id: "none", format: "fw_b" } });
  await ask(convert, "/api/guidelines/convert", { body: {} });
  await ask("GET /api/guidelines/explain", "/api/guidelines/explain?file=src/app.ts");
  await ask("GET /api/guidelines/explain", "/api/guidelines/explain?file=a.ts&tools=vi");
  await ask("GET /api/guidelines/lint", "/api/guidelines/lint");
  const sync = "POST /api/guidelines/sync";
  await ask(sync, "/api/guidelines/sync", { body: { source: "fw_c", targets: ["agents"] } });
  await ask(sync, "/api/guidelines/sync", { body: { source: "vi" } });
  await ask("GET /api/files", "/api/files?path=CLAUDE.md");
  await ask("GET /api/files", "/api/files?path=none.md");
  await ask("GET /api/files", "/api/files?path=CLAUDE.md&start_line=900");
  await ask("POST /api/guidelines/export", "/api/guidelines/export", { body: { format: "fw_c" } });
});

test("agents answer as described", async () => {
  await ask("GET /agents", "/agents");
  const prompt = "POST /agents/{name}/{id}";
  for (const message of ["hello", "fail", "fail for good", ""]) {
    await ask(prompt, "/agents/echo/1", { body: { message } });
  }
  for (const message of ["hello", "fail for good"]) {
    await follow(prompt, "/agents/echo/1", { body: { message } });
  }
  await ask(prompt, "/agents/none/1", { body: { message: "x" } });
  await ask(prompt, "/agents/hidden/1", { body: { message: "x" } });
  await ask(prompt, "/agents/echo/1", { body: { message: "x" }, headers: { "content-type": "text/plain" } });
  await ask(prompt, "/agents/echo/1", { body: { message: "x".repeat(2_000_000) } });
  const withKey = { headers: { "idempotency-key": "k" } };
  await ask(prompt, "/agents/echo/keyed", { ...withKey, body: { message: "one" } });
  await ask(prompt, "/agents/echo/keyed", { ...withKey, body: { message: "two" } });
  await ask("POST /prompt/{session}", "/prompt/s", { body: { message: "hello" } });
  await follow("POST /prompt/{session}/events", "/prompt/s", { body: { message: "hello" } });
  const { dispatch_id } = await ask("POST /agents/{name}/{id}/dispatch", "/agents/echo/1/dispatch", {
    body: { input: { any: "json" } },
  });
  await served.service.engine.awaitDispatch(dispatch_id);
  await follow("GET /agents/{name}/{id}/events", "/agents/echo/1/events", {
    until: await served.service.engine.events.last("agent/echo/1"),
  });
  await ask("GET /agents/{name}/{id}/history", "/agents/echo/1/history");
  await ask("GET /agents/{name}/{id}/history", "/agents/echo/unknown/history");
  const { operations } = (await served.send("/agents/echo/1/operations")).body;
  await ask("GET /agents/{name}/{id}/operations", "/agents/echo/1/operations");
  const itsEvents = `/agents/echo/1/operations/${operations[0].operation_id}/events`;
  await ask("GET /agents/{name}/{id}/operations/{operation_id}/events", itsEvents);
  const { events } = (await served.send(itsEvents)).body;
  const { turn_id } = events.find(({ type }: { type: string }) => type === "turn_request");
  await ask("GET /agents/{name}/{id}/turns/{turn_id}", `/agents/echo/1/turns/${turn_id}`);
  await ask("GET /agents/{name}/{id}/turns/{turn_id}", "/agents/echo/1/turns/unknown");
  const fork = "POST /agents/{name}/{id}/turns/{turn_id}/fork";
  await ask(fork, `/agents/echo/1/turns/${turn_id}/fork`, { body: {} });
  await ask(fork, `/agents/echo/1/turns/${turn_id}/fork`, { body: { session: "default" } });
  await ask("POST /agents/{name}/{id}/abort", "/agents/echo/1/abort");
  await ask("DELETE /agents/{name}/{id}", "/agents/echo/1");
  await ask("DELETE /agents/{name}/{id}", "/agents/echo/1");
});

test("sessions answer as described", async () => {
  await ask("GET /sessions", "/sessions?limit=2&count=true&order=recent");
  await ask("GET /sessions", "/sessions?cursor=none");
  await ask("GET /api/guidelines/usage", "/api/guidelines/usage?since=2026-01-01");
  await ask("GET /api/guidelines/usage", "/api/guidelines/usage?since=soon");
  const prune = "POST /sessions/prune";
  await ask(prune, "/sessions/prune", { body: { older_than_seconds: 3_600, dry_run: true } });
  await ask(prune, "/sessions/prune", { body: { older_than_seconds: 1 } });
});

test("approvals answer as described", async () => {
  const paying = ask("POST /agents/{name}/{id}", "/agents/paying/1", { body: { message: "pay 5" } });
  for await (const { event } of readEventStream(await served.stream("/agents/paying/1/events"))) {
    if (event === "approval_request") break;
  }
  const { approvals } = await ask("GET /agents/{name}/{id}/approvals", "/agents/paying/1/approvals");
  await ask("GET /approvals", "/approvals?agent=paying");
  await ask("GET /approvals", "/approvals?instance=1");
  await ask("GET /waiting", "/waiting?limit=1");
  await ask("GET /waiting", "/waiting?cursor=none");
  const decide = "POST /agents/{name}/{id}/approvals/{approval_id}";
  const rulesPath = "/agents/{name}/{id}/approvals/{approval_id}/rules";
  const path = `/agents/paying/1/approvals/${approvals[0].approval_id}`;
  await ask(`GET ${rulesPath}`, `${path}/rules`);
  for (const body of [{}, { rule: { tool: "refund" } }, { rule: { tool: "pay", agent: "paying" } }])
    await ask(`POST ${rulesPath}`, `${path}/rules`, { body });
  for (const body of [{}, { approved: true }, { approved: true }]) await ask(decide, path, { body });
  await paying;
  await follow("GET /agents/{name}/{id}/events", "/agents/paying/1/events", {
    until: await served.service.engine.events.last("agent/paying/1"),
  });
});

test("dispatches answer as described, dead letters too", async () => {
  const body = { input: "fail for good" };
  const sent = await ask("POST /agents/{name}/{id}/dispatch", "/agents/echo/dead/dispatch", { body });
  await served.service.engine.awaitDispatch(sent.dispatch_id);
  const path = `/dispatches/${sent.dispatch_id}`;
  expect(await ask("GET /dispatches/{dispatch_id}", path)).toMatchObject({ status: "failed" });
  await ask("GET /dispatches/{dispatch_id}", "/dispatches/none");
  await ask("GET /dispatches", "/dispatches?limit=2");
  await ask("GET /dispatches", "/dispatches?cursor=none");
  await ask("POST /dispatches/retry", "/dispatches/retry", { body: { agent: "none" } });
  await ask("POST /dispatches/retry", "/dispatches/retry", { body: { limit: 0 } });
  await ask("POST /dispatches/cancel", "/dispatches/cancel", { body: { ids: [sent.dispatch_id, "none"] } });
  await ask("POST /dispatches/cancel", "/dispatches/cancel", { body: {} });
  await ask("POST /dispatches/{dispatch_id}/retry", `${path}/retry`);
  await served.service.engine.awaitDispatch(sent.dispatch_id);
  await ask("POST /dispatches/{dispatch_id}/cancel", `${path}/cancel`);
  const done = await ask("POST /agents/{name}/{id}/dispatch", "/agents/echo/2/dispatch", {
    body: { input: "x" },
  });
  await served.service.engine.awaitDispatch(done.dispatch_id);
  await ask("POST /dispatches/{dispatch_id}/retry", `/dispatches/${done.dispatch_id}/retry`);
  await ask("GET /dispatches/{dispatch_id}", `/dispatches/${done.dispatch_id}`);
});

test("workflows and runs answer as described, however they end", async () => {
  await ask("GET /workflows", "/workflows");
  await ask("GET /schedules", "/schedules");
  const start = "POST /workflows/{name}";
  await ask(start, "/workflows/strict", { body: { n: "no number" } });
  await ask(start, "/workflows/none", { body: {} });
  for (const [name, body] of Object.entries({ strict: { n: 1 }, failing: {}, talking: { lines: 3 } })) {
    const { run_id } = await ask(start, `/workflows/${name}`, { body });
    await ask(start, `/workflows/${name}?wait=result`, { body });
    await follow(start, `/workflows/${name}`, { body });
    await follow("GET /runs/{run_id}/stream", `/runs/${run_id}/stream`);
    await ask("GET /runs/{run_id}", `/runs/${run_id}`);
    await ask("GET /runs/{run_id}/events", `/runs/${run_id}/events?limit=2`);
    await ask("GET /runs/{run_id}/journal", `/runs/${run_id}/journal`);
    await ask("POST /runs/{run_id}/signal", `/runs/${run_id}/signal`, { body: { name: "late" } });
    await ask("POST /runs/{run_id}/retry", `/runs/${run_id}/retry`);
  }
  const waiting = { body: {}, headers: { "idempotency-key": "waiting" } };
  const { run_id } = await ask(start, "/workflows/waiting", waiting);
  const ended = ask(start, "/workflows/waiting?wait=result", waiting);
  await ask("POST /runs/{run_id}/signal", `/runs/${run_id}/signal`, { body: { name: "other" } });
  await ask("GET /runs/{run_id}", `/runs/${run_id}`);
  await ask("POST /runs/{run_id}/cancel", `/runs/${run_id}/cancel`);
  await ended;
  await ask("GET /runs", "/runs?limit=50&count=true");
  await ask("POST /runs/cancel", "/runs/cancel", { body: { ids: [run_id, "none"] } });
  await ask("POST /runs/cancel", "/runs/cancel", { body: {} });
  await ask("POST /runs/retry", "/runs/retry", { body: { workflow: "failing" } });
  await ask("GET /runs", "/runs?status=cancelled&limit=1");
  await ask("GET /runs/{run_id}", "/runs/none");
});

test("a webhook answers as described", async () => {
  const post = async (signature: string): Promise<void> => {
    const headers = { "x-hub-signature-256": signature };
    await ask("POST /webhooks/{name}", "/webhooks/github", { body: { zen: "x" }, headers });
  };
  const right = createHmac("sha256", webhookSecrets.github).update('{"zen":"x"}').digest("hex");
  await post(`sha256=${right}`);
  await post("sha256=00");
  await ask("POST /webhooks/{name}", "/webhooks/none", { body: {} });
  await ask("GET /deliveries", "/deliveries?limit=1");
  await ask("GET /deliveries", "/deliveries?cursor=none");
});

test("the routes of chat pages answer as described, with errors in plain text", async () => {
  const chat = "/agents/{name}/{id}/ui";
  const messages = [{ id: "m1", role: "user", parts: [{ type: "text", text: "hello" }] }];
  const expectDescribed = async (operation: string, path: string, sent: SentJson = {}): Promise<void> => {
    const reply = await served.stream(path, sent);
    const described = operations.get(operation)?.responses[reply.status];
    const [type = ""] = (reply.headers.get("content-type") ?? "").split(";");
    if (reply.status !== 204) expect(described?.content[type]).toBeDefined();
    expect(described).toBeDefined();
    await reply.text();
    if (reply.status < 400) answered.add(operation);
  };
  await expectDescribed(`POST ${chat}`, "/agents/echo/chat/ui", { body: { messages } });
  await expectDescribed(`POST ${chat}`, "/agents/echo/chat/ui", { body: { messages: [] } });
  await expectDescribed(`POST ${chat}`, "/agents/none/chat/ui", { body: { messages } });
  await expectDescribed(`GET ${chat}/{session}/stream`, "/agents/echo/chat/ui/default/stream");
  const agUi = "POST /agents/{name}/{id}/agui";
  const run = { threadId: "t", runId: "r", messages: [{ id: "m", role: "user", content: "hello" }] };
  await expectDescribed(agUi, "/agents/echo/front/agui", { body: run });
  await expectDescribed(agUi, "/agents/echo/front/agui", { body: { ...run, messages: [] } });
  await expectDescribed(`${agUi}/connect`, "/agents/echo/front/agui/connect", { body: run });
  await ask(`GET ${chat}/{session}/messages`, "/agents/echo/chat/ui/default/messages?limit=5");
  await ask(`POST ${chat}/{session}/stop`, "/agents/echo/chat/ui/default/stop", { body: {} });
});

test("the routes of MCP and A2A answer as described, with errors of JSON-RPC", async () => {
  const headers = { accept: "application/json, text/event-stream", "mcp-protocol-version": "2025-11-25" };
  const list = { jsonrpc: "2.0", id: 1, method: "tools/list", params: {} };
  const reply = await served.stream("/mcp", { body: list, headers });
  expect(operations.get("POST /mcp")?.responses[200]?.content).toHaveProperty("text/event-stream");
  expect(await reply.text()).toContain("guidelines_for");
  answered.add("POST /mcp");
  await ask("POST /mcp", "/mcp", { body: { jsonrpc: "1.0" }, headers });
  const description = "/.well-known/oauth-protected-resource";
  await ask("POST /a2a/{name}", "/a2a/echo?A2A-Version=1.0", { body: { ...list, method: "ListTasks" } });
  const card = "/.well-known/agent-card.json";
  for (const at of ["", "/a2a/echo"]) await ask(`GET ${at.replace("echo", "{name}")}${card}`, `${at}${card}`);
  const oauth = { issuer: "https://id.example", jwks: "https://id.example/k", resource: "https://k.it" };
  const withTokens = await serveForTest({ access: { oauth } });
  for (const path of [description, `${description}/mcp`]) {
    await ask(`GET ${path}`, path);
    const { body } = await withTokens.send(path);
    const described = operations.get(`GET ${path}`)?.responses[200]?.content["application/json"]?.schema;
    expect([body.resource, faultsOf(described, body)]).toEqual(["https://k.it", undefined]);
    answered.add(`GET ${path}`);
  }
});

test("the routes of model clients answer as described, with errors in OpenAI's form", async () => {
  await ask("GET /v1/models", "/v1/models");
  const chat = "POST /v1/chat/completions";
  const messages = [{ role: "user", content: "hello" }];
  await ask(chat, "/v1/chat/completions", { body: { model: "echo", messages } });
  await ask(chat, "/v1/chat/completions", { body: { model: "none", messages } });
  await ask(chat, "/v1/chat/completions", { body: { model: "echo", messages: [] } });
  const { id } = await ask("POST /v1/responses", "/v1/responses", {
    body: { model: "echo", input: "hello" },
  });
  await ask("POST /v1/responses", "/v1/responses", { body: { model: "echo", input: "x", tools: [{}] } });
  const one = "/v1/responses/{response_id}";
  await ask(`GET ${one}`, `/v1/responses/${id}`);
  await ask(`GET ${one}`, "/v1/responses/none");
  await ask(`POST ${one}/cancel`, `/v1/responses/${id}/cancel`, { body: {} });
});

test("every route with a body refuses one that is not a JSON object, and unwraps a wrapped one", async () => {
  const { run_id } = await served.service.startRun("waiting", {});
  const to = { agent: "echo", instance_id: "bodies", session: "default" };
  const { dispatch_id } = await served.service.dispatch(to, "x");
  const positions: Readonly<Record<string, string>> = { name: "echo", run_id, dispatch_id };
  const isJson = (one: string) =>
    operations.get(one)?.responses[400]?.content["application/json"] !== undefined;
  const posts = [...operations.keys()].filter(
    (one) => /^POST (?!\/(?:webhooks|mcp|a2a))/.test(one) && isJson(one),
  );
  expect(posts.length).toBeGreaterThan(12);
  for (const operation of posts) {
    const path = operation
      .slice("POST ".length)
      .replace("/workflows/{name}", "/workflows/strict")
      .replace(/\{(\w+)\}/g, (_, name: string) => positions[name] ?? "1");
    const send = async (type: string, body: string): Promise<string> => {
      const headers = { "content-type": type };
      const reply = await fetch(served.url + path, { method: "POST", headers, body });
      const { error } = JSON.parse(await reply.text());
      return `${operation} ${reply.status} ${error.code ?? error.type}`;
    };
    expect(await send("application/json", "{")).toBe(`${operation} 400 invalid_json`);
    expect(await send("application/json", "[]")).toBe(`${operation} 400 invalid_request`);
    expect(await send("text/plain", "{}")).toBe(`${operation} 415 unsupported_media_type`);
    const issues = async (body: unknown): Promise<unknown> =>
      (await served.send(path, { body })).body.error.meta?.issues;
    const wrong = { colour: "red", n: "no number" };
    expect(await issues({ payload: wrong })).toEqual(await issues(wrong));
  }
});

test("these tests cover every operation", () => {
  // Logins need an authorization server: routes/logins.test.ts.
  const all = [...operations.keys()].filter((operation) => !operation.includes(" /logins/"));
  expect(all.filter((operation) => !answered.has(operation))).toEqual([]);
});
