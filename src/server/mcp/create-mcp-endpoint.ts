import {
  createMcpHandler,
  isCallToolResult,
  McpServer,
  ProtocolError,
  ProtocolErrorCode,
} from "@modelcontextprotocol/server";
import { z } from "zod";
import type { Skill } from "../../agents/define/agent-profile.ts";
import { version } from "../../base/own-package.ts";
import { addResources, instructions, useProjectTools } from "../../mcp/server/create-mcp-server.ts";
import { type ServedTool, toServedTool } from "../../mcp/server/read-tool.ts";
import type { Project } from "../../project/project.ts";
import type { Principal } from "../../protocol/access.ts";
import type { ServerLimits } from "../limits.ts";
import { staticReply } from "../reply.ts";
import type { RouteRequest } from "../route.ts";
import type { EventStreams } from "../streams/event-streams.ts";
import { type McpContext, senderOf } from "./mcp-work.ts";
import { serveTasks } from "./tasks.ts";
import { tasksExtension } from "./work-result.ts";
import { createWorkTools } from "./work-tools.ts";

export interface McpEndpointOptions {
  readonly project: Project;
  /** The agents and workflows; undefined for a server without a service. */
  readonly work: McpContext | undefined;
  readonly limits: Pick<ServerLimits, "heartbeatMs">;
  readonly streams: EventStreams;
  readonly masked: <Value>(value: Value) => Value;
  readonly onError: (error: unknown) => void;
}

/** Answers MCP requests over HTTP, in the revisions 2025-11-25 and 2026-07-28. It keeps nothing between two requests. */
export interface McpEndpoint {
  answer(request: RouteRequest, message: unknown): Promise<Response>;
  /** Aborts the requests under way, not their work. */
  close(): Promise<void>;
}

/** How long a client may keep a list, in ms. A list depends on its reader. */
const cacheHint = { ttlMs: 60_000, cacheScope: "private" } as const;
const cacheHints = {
  "tools/list": cacheHint,
  "prompts/list": cacheHint,
  "resources/list": cacheHint,
  "resources/templates/list": cacheHint,
  "server/discover": cacheHint,
};

export function createMcpEndpoint(options: McpEndpointOptions): McpEndpoint {
  const { project, work, limits, streams, masked, onError } = options;
  const projectTools: ServedTool[] = [];
  useProjectTools(project, { onError }, (tool, how) => projectTools.push(toServedTool(tool, how)));
  const workTools = work && createWorkTools(work, onError);
  const toolsOf = async (principal: Principal | undefined): Promise<readonly ServedTool[]> =>
    workTools === undefined ? projectTools : [...projectTools, ...(await workTools(principal))];
  const handler = createMcpHandler(
    ({ era }) => {
      const server = new McpServer(
        { name: "kit", title: `kit: ${project.name}`, version },
        {
          instructions,
          cacheHints,
          capabilities: {
            tools: {},
            resources: {},
            ...(work !== undefined && era === "modern" ? { extensions: { [tasksExtension]: {} } } : {}),
          },
          inputRequired: { legacyShim: false },
        },
      );
      const more = work?.settings.extend?.(server, () => handler.notify) ?? [];
      serveTools(server, async (principal) => [...(await toolsOf(principal)), ...more], masked);
      addResources(server, project);
      for (const skill of work?.service.app.skills() ?? []) addPrompt(server, skill, masked);
      if (work !== undefined && era === "modern") serveTasks(server.server, work);
      return server;
    },
    { keepAliveMs: limits.heartbeatMs },
  );
  return {
    async answer({ principal, url, raw, clientGone }, parsedBody) {
      const signal = clientGone({ silent: true });
      const reply = await handler.fetch(new Request(url, { method: "POST", headers: raw.headers, signal }), {
        parsedBody,
        authInfo: { token: "", clientId: principal?.id ?? "", scopes: [], extra: { principal } },
      });
      const type = reply.headers.get("content-type");
      if (type?.startsWith("text/event-stream") !== true || reply.body === null) {
        const headers = type === null ? {} : { "content-type": type };
        return staticReply(reply.body === null ? null : await reply.text(), {
          status: reply.status,
          headers,
        });
      }
      const texts = reply.body.pipeThrough(new TextDecoderStream());
      try {
        const slot = streams.reserve(principal);
        return streams.open(texts, { slot, resumable: false, toLastChunk: () => undefined });
      } catch (error) {
        await texts.cancel();
        throw error;
      }
    },
    close: () => handler.close(),
  };
}

/** Lists and calls tools that were converted before. `McpServer` would convert each one for each request. */
function serveTools(
  { server }: McpServer,
  toolsOf: (principal: Principal | undefined) => Promise<readonly ServedTool[]>,
  masked: <Value>(value: Value) => Value,
): void {
  server.setRequestHandler("tools/list", async (_, call) => ({
    tools: (await toolsOf(senderOf(call))).map(({ definition }) => definition),
  }));
  server.setRequestHandler("tools/call", async ({ params }, call) => {
    const tools = await toolsOf(senderOf(call));
    const tool = tools.find(({ definition }) => definition.name === params.name);
    if (tool === undefined)
      throw new ProtocolError(
        ProtocolErrorCode.InvalidParams,
        "There is no tool of this name: tools/list has them.",
      );
    const result = masked(await tool.call(params.arguments ?? {}, call));
    return isCallToolResult(result)
      ? server.projectCallToolResult(result, tool.definition.outputSchema)
      : result;
  });
}

const promptArguments = z.object({
  task: z.string().optional().meta({ description: "What to do with the skill." }),
});

/** Adds a skill of the project as a prompt, which a person chooses. */
function addPrompt(
  server: McpServer,
  { name, description, instructions: text }: Skill,
  masked: <Value>(value: Value) => Value,
): void {
  server.registerPrompt(name, { title: name, description, argsSchema: promptArguments }, ({ task = "" }) =>
    masked({
      messages: [
        {
          role: "user" as const,
          content: { type: "text" as const, text: [text, task].join("\n\n").trimEnd() },
        },
      ],
    }),
  );
}
