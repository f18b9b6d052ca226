import { once } from "node:events";
import { existsSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { gunzipSync } from "node:zlib";
import { afterEach, expect, onTestFinished, test } from "vitest";
import { campaignTest } from "../testing/campaign.suite.ts";
import { createTemporaryRepository } from "../testing/temporary-repository.ts";
import { beginProcess } from "./testing/run-kit.ts";
import { endAll, type Running, serveKit } from "./testing/served-kit.ts";

interface SentSpan {
  readonly traceId: string;
  readonly spanId: string;
  readonly parentSpanId?: string;
  readonly name: string;
  readonly attributes: readonly { readonly key: string; readonly value: unknown }[];
}

/** A receiver of OTLP over HTTP, as JSON. */
async function receive() {
  const requests: {
    readonly path: string;
    readonly authorization: string | undefined;
    readonly body: string;
  }[] = [];
  const server = createServer(async (request, reply) => {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    const bytes = Buffer.concat(chunks);
    const body = (request.headers["content-encoding"] === "gzip" ? gunzipSync(bytes) : bytes).toString();
    requests.push({ path: request.url ?? "", authorization: request.headers.authorization, body });
    reply.setHeader("content-type", "application/json");
    reply.end("{}");
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  const { port } = server.address() as AddressInfo;
  const spans = (): SentSpan[] =>
    requests
      .filter(({ path }) => path === "/v1/traces")
      .flatMap(({ body }) => JSON.parse(body).resourceSpans)
      .flatMap(({ scopeSpans }) => scopeSpans)
      .flatMap(({ spans: sent }) => sent as SentSpan[]);
  return {
    endpoint: `http://127.0.0.1:${port}`,
    requests,
    spans,
    async until(isThere: (all: readonly SentSpan[]) => boolean): Promise<readonly SentSpan[]> {
      for (;;) {
        const all = spans();
        if (isThere(all)) return all;
        await new Promise((resolve) => setTimeout(resolve, 25));
      }
    },
  };
}

const running: Running = new Map();
afterEach(() => endAll(running));

const canary = "sk-canary-4711-abcdefghij";
const files = {
  "kit.toml": '[agent]\nmodel = "offline/guide"\n',
  "src/agents/guide.ts": `export const triggers = { webhook: true };
export default { kind: "kit.agent", describe: async () => ({ instructions: "Be brief." }) };
`,
  "src/workflows/order.ts": `import { existsSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import guide from "../agents/guide.ts";
export const run = async (ctx) => {
  const agent = await ctx.init(guide);
  await agent.session().prompt("What is here?");
  await ctx.step("ask", () => "asked");
  await ctx.step("stick", async () => {
    const mark = join(ctx.env.MARK, "stuck");
    if (existsSync(mark)) return;
    writeFileSync(mark, "");
    await new Promise(() => setTimeout(() => undefined, 60_000));
  });
  await ctx.step("end", () => "done");
};
`,
};
const parent = { traceparent: "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01" };

function pathOf(span: SentSpan, all: readonly SentSpan[]): string {
  const above = all.find(({ spanId }) => spanId === span.parentSpanId);
  return above === undefined ? span.name : `${pathOf(above, all)} > ${span.name}`;
}

test("kit start sends spans and metrics to the address in the environment, flushes them when it stops, and sends no content or keys", async () => {
  await using repository = await createTemporaryRepository(files);
  const receiver = await receive();
  const kit = await serveKit(running, ["start", "--port", "0", "--log", "json"], {
    cwd: repository.root,
    env: {
      OTEL_EXPORTER_OTLP_ENDPOINT: receiver.endpoint,
      OTEL_EXPORTER_OTLP_HEADERS: "authorization=Bearer%20receiver-key-123456",
      OTEL_SERVICE_NAME: "shop",
      OTEL_BSP_SCHEDULE_DELAY: "60000",
      SHOP_API_KEY: canary,
    },
  });
  const reply = await fetch(`${kit.url}/agents/guide/1`, {
    method: "POST",
    headers: { "content-type": "application/json", ...parent },
    body: JSON.stringify({ message: `What is here? ${canary} receiver-key-123456 private words` }),
  });
  expect(reply.status).toBe(200);
  await kit.stop("SIGTERM");
  const sent = receiver.spans();
  const paths = sent.map((span) => pathOf(span, sent));
  expect(new Set(paths)).toEqual(
    new Set([
      "invoke_agent guide",
      "invoke_agent guide > chat guide",
      ...paths.filter((path) => path.startsWith("invoke_agent guide > execute_tool ")),
    ]),
  );
  expect(sent.find(({ name }) => name === "invoke_agent guide")).toMatchObject({
    traceId: parent.traceparent.slice(3, 35),
    parentSpanId: parent.traceparent.slice(36, 52),
  });
  const all = receiver.requests.map(({ body }) => body).join();
  for (const secret of [canary, "receiver-key", "private words"]) expect(all).not.toContain(secret);
  expect(all).toContain('"shop"');
  expect(receiver.requests.every(({ authorization }) => authorization === "Bearer receiver-key-123456")).toBe(
    true,
  );
  const metrics = receiver.requests
    .filter(({ path }) => path === "/v1/metrics")
    .map(({ body }) => body)
    .join();
  for (const name of [
    "gen_ai.client.inference.duration",
    "gen_ai.invoke_agent.duration",
    "kit.queue.depth",
    "kit.runs",
    "kit.approvals.waiting",
    "kit.dead_letters",
    "nodejs.eventloop.delay.p99",
  ])
    expect(metrics).toContain(name);
  const lines = kit
    .stderr()
    .split("\n")
    .flatMap((line) => (line.startsWith("{") ? [JSON.parse(line)] : []));
  const ids = { trace_id: parent.traceparent.slice(3, 35) };
  expect(lines.filter(({ type }) => type === "operation")).toMatchObject([
    {
      agent: "guide",
      instance_id: "1",
      kind: "prompt",
      outcome: "completed",
      ...ids,
      span_id: sent.find(({ name }) => name === "invoke_agent guide")?.spanId,
    },
  ]);
  expect(lines.find(({ path }) => path === "/agents/guide/1")).toMatchObject({
    type: "request",
    status: 200,
    ...ids,
  });
  expect(kit.stderr()).not.toContain("private words");
});

campaignTest(
  "a run that kill -9 interrupted is one trace, and the parent of each span was sent",
  async () => {
    await using repository = await createTemporaryRepository(files);
    const receiver = await receive();
    const options = {
      cwd: repository.root,
      env: {
        OTEL_EXPORTER_OTLP_ENDPOINT: receiver.endpoint,
        OTEL_METRICS_EXPORTER: "none",
        OTEL_BSP_SCHEDULE_DELAY: "10",
        MARK: repository.root,
      },
      begin: beginProcess,
    };
    const first = await serveKit(running, ["start", "--port", "0"], options);
    const accepted = await fetch(`${first.url}/workflows/order`, {
      method: "POST",
      headers: { "content-type": "application/json", ...parent },
      body: "{}",
    });
    expect(accepted.status).toBe(202);
    await receiver.until((all) => all.some(({ name }) => name === "kit.step ask"));
    await expect.poll(() => existsSync(join(repository.root, "stuck")), { timeout: 30_000 }).toBe(true);
    await first.stop("SIGKILL");
    const second = await serveKit(running, ["start", "--port", "0", "--otel"], options);
    const all = await receiver.until((sent) => sent.some(({ name }) => name === "invoke_workflow order"));
    await second.stop("SIGTERM");
    expect(all.filter(({ name }) => name === "invoke_workflow order")).toHaveLength(1);
    expect(new Set(all.map(({ traceId }) => traceId))).toEqual(new Set([parent.traceparent.slice(3, 35)]));
    const ids = new Set(all.map(({ spanId }) => spanId));
    expect(ids.size).toBe(all.length);
    const orphans = all.filter(({ parentSpanId = "" }) => !ids.has(parentSpanId));
    expect(orphans.map(({ name, parentSpanId }) => [name, parentSpanId])).toEqual([
      ["invoke_workflow order", parent.traceparent.slice(36, 52)],
    ]);
    const paths = all.map((span) => pathOf(span, all));
    expect(paths).toContain("invoke_workflow order > invoke_agent guide");
    for (const step of ["ask", "stick", "end"])
      expect(paths).toContain(`invoke_workflow order > kit.step ${step}`);
  },
  60_000,
);

test("an unreachable receiver does no harm, and lost spans are reported at the end", async () => {
  await using repository = await createTemporaryRepository(files);
  const kit = await serveKit(running, ["start", "--port", "0", "--otel"], {
    cwd: repository.root,
    env: {
      OTEL_EXPORTER_OTLP_ENDPOINT: "http://127.0.0.1:9",
      OTEL_EXPORTER_OTLP_TIMEOUT: "300",
      OTEL_METRICS_EXPORTER: "none",
    },
  });
  const reply = await fetch(`${kit.url}/agents/guide/1`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ message: "What is here?" }),
  });
  expect(reply.status).toBe(200);
  const started = performance.now();
  expect(await kit.stop("SIGTERM")).toBe(0);
  expect(performance.now() - started).toBeLessThan(10_000);
  expect(kit.stderr()).toMatch(/OpenTelemetry: \d+ spans were lost: the receiver could not be reached/);
});

/** Has Node find no package of OpenTelemetry's SDK, as in a project that has not installed it. */
const withoutSdk = `import { registerHooks } from "node:module";
registerHooks({
  resolve(name, context, next) {
    if (name.startsWith("@opentelemetry/sdk")) throw Object.assign(new Error(name), { code: "ERR_MODULE_NOT_FOUND" });
    return next(name, context);
  },
});
`;

test("--otel without its packages ends with the command to install them", async () => {
  await using repository = await createTemporaryRepository({ ...files, "without-sdk.mjs": withoutSdk });
  const env = { NODE_OPTIONS: `--import=${join(repository.root, "without-sdk.mjs")}` };
  const line = beginProcess(["start", "--port", "0", "--otel"], { cwd: repository.root, env });
  const [said, code] = await Promise.all([text(line.stderr), line.ended]);
  expect(code).not.toBe(0);
  expect(said).toContain("A package that telemetry needs is not installed.");
  expect(said).toMatch(/npm install @opentelemetry\/api .*@opentelemetry\/sdk-trace/);
  expect(said).not.toContain("    at ");
});

test("a server starts even if the environment asks for telemetry without its packages", async () => {
  await using repository = await createTemporaryRepository({ ...files, "without-sdk.mjs": withoutSdk });
  const kit = await serveKit(running, ["start", "--port", "0"], {
    cwd: repository.root,
    env: {
      NODE_OPTIONS: `--import=${join(repository.root, "without-sdk.mjs")}`,
      OTEL_EXPORTER_OTLP_ENDPOINT: "http://127.0.0.1:9",
    },
    begin: beginProcess,
  });
  await kit.hasOutput("Nothing is traced, although OTEL_EXPORTER_OTLP_ENDPOINT asks for it.");
  expect(kit.stderr()).toMatch(/npm install @opentelemetry\/api/);
  expect((await fetch(`${kit.url}/health`)).status).toBe(200);
});
