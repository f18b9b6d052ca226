import { setTimeout as sleep } from "node:timers/promises";
import { type CallToolResult, McpServer } from "@modelcontextprotocol/server";
import { z } from "zod";

export interface ToolServerOptions {
  /** Called with the name of the tool at every call. */
  readonly onCall?: (line: string) => void;
  readonly exit?: (code: number) => void;
  readonly startChild?: () => number;
}

const redDot =
  "iVBORw0KGgoAAAANSUhEUgAAAAUAAAAFCAYAAACNbyblAAAAHElEQVQI12P4//8/w38GIAXDIBKE0DHxgljNBAAO9TXL0Y4OHwAAAABJRU5ErkJggg==";

/** Creates a real MCP server with tools of every kind. */
export function createToolServer({ onCall, exit, startChild }: ToolServerOptions = {}): McpServer {
  const server = new McpServer(
    { name: "tools", version: "1" },
    { capabilities: { tools: { listChanged: true } } },
  );
  const text = (value: string): CallToolResult => ({ content: [{ type: "text", text: value }] });
  const readOnly = { readOnlyHint: true };

  server.registerTool(
    "echo",
    {
      description: "Says what it is told.",
      inputSchema: z.object({ text: z.string() }),
      annotations: readOnly,
    },
    ({ text: said }) => {
      onCall?.("echo");
      return text(said);
    },
  );
  server.registerTool(
    "add",
    {
      description: "Adds two numbers.",
      inputSchema: z.object({ a: z.number(), b: z.number() }),
      outputSchema: z.object({ sum: z.number() }),
    },
    ({ a, b }) => {
      onCall?.("add");
      return { content: [], structuredContent: { sum: a + b } };
    },
  );
  server.registerTool("picture", { description: "Draws a red dot.", inputSchema: z.object({}) }, () => ({
    content: [
      { type: "text", text: "A dot:" },
      { type: "image", mimeType: "image/png", data: redDot },
      { type: "audio", mimeType: "audio/wav", data: "AAAA" },
      { type: "resource", resource: { uri: "file:///notes.md", text: "remember" } },
      { type: "resource_link", uri: "file:///more.md", name: "more" },
    ],
  }));
  server.registerTool("fail", { description: "Fails.", inputSchema: z.object({}) }, () => {
    onCall?.("fail");
    return { ...text("It did not work."), isError: true };
  });
  server.registerTool("environment", { description: "Its environment.", inputSchema: z.object({}) }, () =>
    text(JSON.stringify({ env: process.env, cwd: process.cwd(), pid: process.pid })),
  );
  server.registerTool(
    "wait",
    { description: "Waits.", inputSchema: z.object({ ms: z.number() }) },
    async ({ ms }, context) => {
      onCall?.("wait");
      await sleep(ms, undefined, { signal: context.mcpReq.signal }).catch(() => onCall?.("wait cancelled"));
      return text("waited");
    },
  );
  for (const [name, annotations] of [
    ["crash", {}],
    ["crash_while_reading", readOnly],
  ] as const) {
    server.registerTool(
      name,
      { description: "Ends its process.", inputSchema: z.object({ code: z.number() }), annotations },
      ({ code }) => {
        onCall?.(name);
        exit?.(code);
        return text("still there");
      },
    );
  }
  server.registerTool("child", { description: "Starts a child.", inputSchema: z.object({}) }, () =>
    text(String(startChild?.())),
  );
  server.registerTool("change", { description: "Gets another tool.", inputSchema: z.object({}) }, () => {
    server.registerTool("extra", { description: "Came later.", inputSchema: z.object({}) }, () =>
      text("extra"),
    );
    return text("changed");
  });
  return server;
}
