import { createHmac } from "node:crypto";
import { beforeAll, beforeEach, expect, test } from "vitest";
import { KitClient } from "../client/kit-client.ts";
import { createOpenTelemetryObserver } from "../otel/create-observer.ts";
import { recordSpans } from "../otel/testing/recorded-spans.ts";
import type { KitEvent } from "../protocol/event.ts";
import { serveForTests } from "./testing/serve-for-tests.ts";
import { webhookSecrets } from "./testing/service-files.ts";
import { openSocket } from "./testing/socket-client.ts";

const trace = "4bf92f3577b34da6a3ce929d0e0e4736";
const traceparent = `00-${trace}-00f067aa0ba902b7-01`;
const headers = { traceparent, tracestate: "rojo=1" };
const sentTrace = { traceparent, tracestate: "rojo=1" };

let events: KitEvent[] = [];
const served = serveForTests({
  expose: "all",
  files: {
    "src/workflows/hand-on.ts": `import echo from "../agents/echo.ts";
export const run = async (ctx) => {
  const agent = await ctx.init(echo);
  await ctx.step("ask", () => agent.session().prompt("hello"));
  await ctx.dispatch("echo", { id: "later", input: "hello" });
};
`,
  },
});
beforeAll(() => {
  served.service.app.onEvent((event) => events.push(event));
});
beforeEach(() => {
  events = [];
});

/** The trace of the first operation, or of the run. */
async function readTrace(): Promise<unknown> {
  for (;;) {
    const [first] = events.filter(({ type }) => type === "operation_start" || type === "run_start");
    if (first !== undefined && "traceparent" in first) {
      const { traceparent: parent, tracestate } = first;
      return { traceparent: parent, tracestate };
    }
    if (first !== undefined) return undefined;
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
}

const body = { message: "hello" };
const routes: readonly (readonly [string, () => Promise<unknown>])[] = [
  ["a prompt", () => served.send("/agents/echo/1", { body, headers })],
  ["a stream", async () => (await served.stream("/agents/echo/1", { body, headers })).text()],
  [
    "a prompt under a key",
    () => served.send("/agents/echo/1", { body, headers: { ...headers, "idempotency-key": "k1" } }),
  ],
  ["a dispatch", () => served.send("/agents/echo/2/dispatch", { body: { input: "hello" }, headers })],
  ["the default agent", () => served.send("/prompt/s", { body, headers })],
  [
    "the default agent's stream",
    async () => (await served.stream("/prompt/s/events", { body, headers })).text(),
  ],
  ["a run", () => served.send("/workflows/hand-on?wait=result", { body: {}, headers })],
  [
    "a webhook",
    () => {
      const text = JSON.stringify({ zen: Math.random() });
      const signature = createHmac("sha256", webhookSecrets.github).update(text).digest("hex");
      const signed = { "content-type": "application/json", "x-hub-signature-256": `sha256=${signature}` };
      return fetch(`${served.url}/webhooks/github`, {
        method: "POST",
        headers: { ...signed, ...headers },
        body: text,
      });
    },
  ],
  [
    "a WebSocket",
    async () => {
      const socket = await openSocket(`${served.url}/agents/echo/3`, { headers });
      await socket.next();
      socket.send({ type: "prompt", request_id: "1", message: "hello" });
      await socket.until("result");
      socket.socket.close();
    },
  ],
  [
    "a frame",
    async () => {
      const socket = await openSocket(`${served.url}/agents/echo/3`);
      await socket.next();
      socket.send({ type: "prompt", request_id: "1", message: "hello", ...sentTrace });
      await socket.until("result");
      socket.socket.close();
    },
  ],
  [
    "a frame of a workflow",
    async () => {
      const socket = await openSocket(`${served.url}/workflows/hand-on`);
      await socket.next();
      socket.send({ type: "invoke", request_id: "1", ...sentTrace });
      await socket.until("result");
    },
  ],
  ["kit/client", () => client().agents.invoke("echo", { id: "4", ...body })],
  ["a dispatch of kit/client", () => client().agents.dispatch("echo", { id: "4", input: "hello" })],
  [
    "a connection of kit/client",
    async () => {
      await using connection = await client().agents.connect("echo", { id: "5" });
      await connection.prompt("hello").result();
    },
  ],
];

function client(): KitClient {
  return new KitClient({ baseUrl: served.url, trace: () => sentTrace });
}

test.each(routes)("the trace of %s is the trace of its work", async (_name, ask) => {
  await ask();
  expect(await readTrace()).toEqual(sentTrace);
});

const hostile: readonly (readonly [string, Readonly<Record<string, string>>])[] = [
  ["none", {}],
  ["words", { traceparent: "no trace" }],
  ["10 KiB", { traceparent: "0".repeat(10_240), tracestate: "a".repeat(4_000) }],
  ["zeros", { traceparent: `00-${"0".repeat(32)}-${"0".repeat(16)}-01` }],
  ["a state alone", { tracestate: "rojo=1" }],
];

test.each(hostile)(
  "a request with %s as its trace is answered like any other, and its work has no trace",
  async (_name, sent) => {
    const reply = await served.send("/agents/echo/6", { body, headers: sent });
    expect(reply.status).toBe(200);
    expect(await readTrace()).toBeUndefined();
  },
);

test("two parents count as none, and an invalid state leaves the parent", async () => {
  const twice = new Headers([
    ["content-type", "application/json"],
    ["traceparent", traceparent],
    ["traceparent", traceparent],
  ]);
  const url = `${served.url}/agents/echo/7`;
  expect((await fetch(url, { method: "POST", headers: twice, body: JSON.stringify(body) })).status).toBe(200);
  expect(await readTrace()).toBeUndefined();
  events = [];
  await served.send("/agents/echo/7", { body, headers: { traceparent, tracestate: "=,=,=" } });
  expect(await readTrace()).toEqual({ traceparent });
});

test("a frame whose trace is not text is answered like any other", async () => {
  const socket = await openSocket(`${served.url}/agents/echo/8`);
  await socket.next();
  socket.send({ type: "prompt", request_id: "1", message: "hello", traceparent: { a: 1 }, tracestate: 7 });
  expect((await socket.until("result")).at(-1)).toMatchObject({ type: "result" });
  socket.socket.close();
});

test("parallel requests have separate traces, and a request without a trace gets none", async () => {
  const ids = Array.from({ length: 20 }, (_, at) => at);
  const idOf = (at: number): string => at.toString(16).padStart(32, "a");
  await Promise.all(
    ids.map((at) =>
      served.send(`/agents/echo/side-${at}`, {
        body,
        headers: at % 2 === 0 ? { traceparent: `00-${idOf(at)}-00f067aa0ba902b7-01` } : {},
      }),
    ),
  );
  const traces = events.flatMap((event) =>
    event.type === "operation_start" ? [[event.instance_id, event.traceparent?.slice(3, 35)]] : [],
  );
  expect(new Map(traces as [string, string | undefined][])).toEqual(
    new Map(ids.map((at) => [`side-${at}`, at % 2 === 0 ? idOf(at) : undefined])),
  );
});

test("a run, its steps, their agents and what it dispatches are one trace", async () => {
  const recorded = recordSpans();
  const observer = createOpenTelemetryObserver({ tracer: recorded.tracer, meter: false });
  const stop = served.service.app.onEvent(observer);
  await served.send("/workflows/hand-on?wait=result", { body: {}, headers });
  while (observer.open > 0 || recorded.spans().length < 6)
    await new Promise((resolve) => setTimeout(resolve, 5));
  stop();
  expect(recorded.paths()).toEqual([
    "invoke_workflow hand-on",
    "invoke_workflow hand-on > invoke_agent echo",
    "invoke_workflow hand-on > invoke_agent echo > chat model",
    "invoke_workflow hand-on > kit.step ask",
    "invoke_workflow hand-on > kit.step ask > invoke_agent echo",
    "invoke_workflow hand-on > kit.step ask > invoke_agent echo > chat model",
  ]);
  const run = recorded.withName("invoke_workflow hand-on");
  expect(run.parentSpanContext).toMatchObject({ traceId: trace, spanId: "00f067aa0ba902b7", isRemote: true });
  for (const span of recorded.spans()) expect(span.spanContext().traceId).toBe(trace);
});
