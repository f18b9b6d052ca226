import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { getRequestListener } from "@hono/node-server";
import { createMcpHandler } from "@modelcontextprotocol/server";
import { expect, onTestFinished, test } from "vitest";
import { createToolServer } from "../../mcp/testing/create-tool-server.ts";
import { createOpenTelemetryObserver } from "../../otel/create-observer.ts";
import { recordSpans } from "../../otel/testing/recorded-spans.ts";
import { openProject } from "../../project/open-project.ts";
import { local } from "../../sandboxes/local/local-sandbox.ts";
import { InMemorySessionStore } from "../../stores/memory/memory-store.ts";
import { createScriptedModel, type Script } from "../../testing/scripted-model.ts";
import { createTemporaryRepository } from "../../testing/temporary-repository.ts";
import { loadConfig } from "../config/load-config.ts";
import { openProjectService } from "../service/open-project-service.ts";

/** Has the default agent of a project work under an observer, and gives the results of its calls. */
async function work(config: string, script: Script, isTraced = true) {
  const folder = await createTemporaryRepository({ "kit.toml": config });
  const { root } = folder;
  const project = await openProject({ root, indexFile: ":memory:" });
  const model = createScriptedModel(script);
  const loaded = await loadConfig({ cwd: root, environment: {} });
  const { app } = await openProjectService({
    project,
    loaded,
    engine: "memory",
    models: { "scripted/test": model },
    sandbox: local({ root }),
    store: new InMemorySessionStore(),
    env: { PATH: process.env.PATH },
  });
  onTestFinished(async () => {
    await app.close();
    await project.close();
    await folder[Symbol.asyncDispose]();
  });
  const recorded = recordSpans();
  const observer = createOpenTelemetryObserver({ tracer: recorded.tracer, meter: false });
  if (isTraced) app.onEvent(observer);
  await (await app.instance("default", "1")).session().prompt("Go on.");
  const results = (model.calls.at(-1)?.prompt ?? []).filter(({ role }) => role === "tool");
  const parentOf = (name: string): string => {
    const { traceId, spanId } = recorded.withName(name).spanContext();
    return `00-${traceId}-${spanId}-01`;
  };
  return { ...recorded, results: JSON.stringify(results), parentOf };
}

const agent = '[agent]\nmodel = "scripted/test"\nallow_shell = true\nallow_compound_commands = true\n';

interface Sent {
  readonly method?: string;
  readonly params?: { readonly _meta?: Readonly<Record<string, unknown>> };
}

/** A real MCP server over HTTP, and the messages that it was sent. */
async function serveTools(): Promise<{ readonly url: string; readonly sent: readonly Sent[] }> {
  const sent: Sent[] = [];
  const handler = createMcpHandler(() => createToolServer());
  const listener = getRequestListener(async (request) => {
    if (request.method === "POST") sent.push((await request.clone().json()) as Sent);
    return handler.fetch(request);
  });
  const server = createServer((request, reply) => void listener(request, reply)).listen(0, "127.0.0.1");
  await once(server, "listening");
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/mcp`, sent };
}

const addition: Script = [
  { toolCalls: [{ name: "mcp__tools__add", input: { a: 2, b: 3 } }] },
  { text: "It is 5." },
];

test("an MCP server finds the span of the call in `_meta`, and the span says which server, tool and transport", async () => {
  const { url, sent } = await serveTools();
  const run = await work(`${agent}[mcp.servers.tools]\nurl = "${url}"\n`, addition);
  const call = sent.find(({ method }) => method === "tools/call");
  expect(run.results).toContain('{\\"sum\\":5}');
  expect(call?.params?._meta).toMatchObject({ traceparent: run.parentOf("execute_tool mcp__tools__add") });
  expect(run.withName("execute_tool mcp__tools__add").attributes).toMatchObject({
    "mcp.method.name": "tools/call",
    "network.transport": "tcp",
    "kit.mcp.server": "tools",
    "kit.mcp.tool": "add",
  });
});

test("without an observer, an MCP server gets no trace", async () => {
  const { url, sent } = await serveTools();
  await work(`${agent}[mcp.servers.tools]\nurl = "${url}"\n`, addition, false);
  const call = sent.find(({ method }) => method === "tools/call");
  expect(call).toBeDefined();
  expect(call?.params?._meta ?? {}).not.toHaveProperty("traceparent");
});

const command: Script = [{ toolCalls: [{ name: "bash", input: { command: "env" } }] }, { text: "ok" }];

test("a command finds the span of its call in TRACEPARENT where the configuration says so", async () => {
  const run = await work(`${agent}[telemetry]\ntrace_commands = true\n`, command);
  expect(run.results).toContain(`TRACEPARENT=${run.parentOf("execute_tool bash")}\\n`);
});

test.each([
  ["by default", ""],
  ["when it is switched off", "[telemetry]\ntrace_commands = false\n"],
])("a command has no TRACEPARENT %s", async (_, telemetry) => {
  const run = await work(`${agent}${telemetry}`, command);
  expect(run.results).toContain("PATH=");
  expect(run.results).not.toContain("TRACEPARENT");
});
