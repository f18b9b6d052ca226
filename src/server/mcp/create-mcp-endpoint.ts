import {
  createMcpHandler,
  InMemoryServerEventBus,
  isCallToolResult,
  McpServer,
  ProtocolError,
  ProtocolErrorCode,
  SdkError,
  type Server,
  type ServerContext,
  type ServerEventBus,
  type Tool,
} from "@modelcontextprotocol/server";
import { z } from "zod";
import type { Skill } from "../../agents/define/agent-profile.ts";
import { version } from "../../base/own-package.ts";
import { addResources, instructions, useProjectTools } from "../../mcp/server/create-mcp-server.ts";
import { type ServedTool, toServedTool } from "../../mcp/server/read-tool.ts";
import type { Project } from "../../project/project.ts";
import type { Principal } from "../../protocol/access.ts";
import type { ErrorEnvelope } from "../../protocol/errors.ts";
import type { ServerLimits } from "../limits.ts";
import { staticReply, toRpcError } from "../reply.ts";
import type { RouteRequest } from "../route.ts";
import type { EventStreams } from "../streams/event-streams.ts";
import { type McpContext, principalOf } from "./mcp-work.ts";
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
  /** Converts what was thrown, and reports it if the client has not caused it. */
  readonly toEnvelope: (error: unknown) => ErrorEnvelope;
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
  const toMasked = maskOnce(masked);
  const handler = createMcpHandler(
    async ({ era, authInfo, requestInfo }) => {
      const server = new McpServer(masked({ name: "kit", title: `kit: ${project.name}`, version }), {
        instructions,
        cacheHints,
        inputRequired: { legacyShim: false },
      });
      guardHandlers(server.server, options);
      const skills = work?.service.app.skills() ?? [];
      // The older revision has notices only in sessions, which kit does not have.
      const canListen = work !== undefined && era === "modern";
      server.server.registerCapabilities({
        tools: { listChanged: canListen },
        resources: { listChanged: false },
        // Also without skills, so that a client hears of the first one.
        ...(canListen || skills.length > 0 ? { prompts: { listChanged: canListen } } : {}),
        ...(canListen ? { extensions: { [tasksExtension]: {} } } : {}),
      });
      const more = work?.settings.extend?.(server, () => handler.notify) ?? [];
      const tools = once(async () => [...(await toolsOf(principalOf(authInfo))), ...more]);
      serveTools(server, toMasked, tools);
      if (requestInfo?.headers.get("mcp-method") === "tools/call") await serveHeaders(server, tools);
      addResources(server, project);
      for (const skill of skills) addPrompt(server, skill);
      // McpServer answers requests about prompts only after one was registered.
      if (canListen && skills.length === 0)
        server.registerPrompt("none", {}, () => ({ messages: [] })).remove();
      if (canListen) serveTasks(server.server, work);
      return server;
    },
    {
      ...(work && { bus: createListChanges(() => listsOf(work)) }),
      keepAliveMs: limits.heartbeatMs,
      onerror: (error) => {
        if (!isOfClient(error)) onError(error);
      },
    },
  );
  return {
    async answer({ principal, url, raw, clientGone }, parsedBody) {
      const signal = clientGone({ silent: true });
      // Any request can become a stream, and a client whose request is refused must have started no work.
      const slot = streams.reserve(principal);
      let texts: ReadableStream<string> | undefined;
      try {
        const reply = await handler.fetch(
          new Request(url, { method: "POST", headers: raw.headers, signal }),
          {
            parsedBody,
            authInfo: { token: "", clientId: principal?.id ?? "", scopes: [], extra: { principal } },
          },
        );
        const type = reply.headers.get("content-type");
        if (type?.startsWith("text/event-stream") === true && reply.body !== null) {
          texts = reply.body.pipeThrough(new TextDecoderStream());
          return streams.open(texts, { slot, resumable: false, toLastChunk: () => undefined });
        }
        slot.release();
        const headers = type === null ? {} : { "content-type": type };
        return staticReply(reply.body === null ? null : new Uint8Array(await reply.arrayBuffer()), {
          status: reply.status,
          headers,
        });
      } catch (error) {
        slot.release();
        await texts?.cancel();
        throw error;
      }
    },
    close: () => handler.close(),
  };
}

function listsOf({ service: { app } }: McpContext) {
  return { tools_list_changed: [app.agents(), app.workflows()], prompts_list_changed: [app.skills()] };
}

type Handler = (request: unknown, call: ServerContext) => unknown;

/** Masks what every handler returns, except lists of tools, which are masked before. What one throws is reported, and the client gets an error without private text. */
function guardHandlers(
  server: Server,
  { masked, toEnvelope }: Pick<McpEndpointOptions, "masked" | "toEnvelope">,
): void {
  const set = server.setRequestHandler.bind(server) as (...args: readonly unknown[]) => void;
  const guarded =
    (handler: Handler, isMasked: boolean): Handler =>
    async (request, call) => {
      try {
        const result = await handler(request, call);
        return isMasked ? result : masked(result);
      } catch (error) {
        // A client that has left gets no reply.
        if (error instanceof ProtocolError || call.mcpReq.signal.aborted) throw error;
        throw toProtocolError(toEnvelope(error));
      }
    };
  Object.assign(server, {
    setRequestHandler: (...args: readonly unknown[]) =>
      set(...args.slice(0, -1), guarded(args.at(-1) as Handler, args[0] === "tools/list")),
  });
}

function toProtocolError({ error }: ErrorEnvelope): ProtocolError {
  const { code, message, data } = toRpcError(error);
  return new ProtocolError(code, message, data);
}

/** Whether a client has caused an error of the SDK: by a wrong request, or by leaving. */
function isOfClient(error: Error): boolean {
  return (
    error instanceof ProtocolError ||
    error instanceof SdkError ||
    error.message.startsWith("Rejected inbound request")
  );
}

/** Masks each definition once: a list has tens of kilobytes, and clients ask for it again and again. */
function maskOnce(masked: McpEndpointOptions["masked"]): (definition: Tool) => Tool {
  const known = new WeakMap<Tool, Tool>();
  return (definition) => {
    const before = known.get(definition);
    if (before !== undefined) return before;
    const after = masked(definition);
    known.set(definition, after);
    return after;
  };
}

/** Lists and calls tools that were converted before. `McpServer` would convert each one for each request. */
function serveTools(
  { server }: McpServer,
  toMasked: (definition: Tool) => Tool,
  tools: () => Promise<readonly ServedTool[]>,
): void {
  server.setRequestHandler("tools/list", async () => ({
    tools: (await tools()).map(({ definition }) => toMasked(definition)),
  }));
  server.setRequestHandler("tools/call", async ({ params }, call) => {
    const tool = (await tools()).find(({ definition }) => definition.name === params.name);
    if (tool === undefined)
      throw new ProtocolError(
        ProtocolErrorCode.InvalidParams,
        "There is no tool of this name: tools/list has them.",
      );
    const result = await tool.call(params.arguments ?? {}, call);
    return isCallToolResult(result)
      ? server.projectCallToolResult(result, tool.definition.outputSchema)
      : result;
  });
}

/**
 * Lets the SDK compare the headers of a call with its arguments, where the tool's schema maps some to headers (`x-mcp-header`). It asks
 * for the schemas of tools that `McpServer` knows; those that the sender may not see stay unknown.
 */
async function serveHeaders(server: McpServer, tools: () => Promise<readonly ServedTool[]>): Promise<void> {
  // A call meets the same error, and reports it.
  const known = await tools().catch((): readonly ServedTool[] => []);
  const toolInputSchemaJson = (called: string): Tool["inputSchema"] | undefined =>
    known.find(({ definition: { name } }) => name === called)?.definition.inputSchema;
  Object.assign(server, { toolInputSchemaJson });
}

/** Calls a function once, and returns the same result from then on. */
function once<Result>(create: () => Result): () => Result {
  let made: { readonly result: Result } | undefined;
  return () => {
    made ??= { result: create() };
    return made.result;
  };
}

const promptArguments = z.object({
  task: z.string().optional().meta({ description: "What to do with the skill." }),
});

/** Adds a skill of the project as a prompt, which a person chooses. */
function addPrompt(server: McpServer, { name, description, instructions: text }: Skill): void {
  server.registerPrompt(name, { title: name, description, argsSchema: promptArguments }, ({ task = "" }) => ({
    messages: [
      {
        role: "user" as const,
        content: { type: "text" as const, text: [text, task].join("\n\n").trimEnd() },
      },
    ],
  }));
}

/** Milliseconds between two comparisons. */
const pollMs = 1_000;

const kinds = ["tools_list_changed", "prompts_list_changed"] as const;

/**
 * The notices that a list has changed, for the streams of `subscriptions/listen`. While a stream is open, the lists are compared each
 * second: a list is another object after each reload. A sender also hears of changes that it may not see: a notice has no content.
 */
function createListChanges(
  read: () => { readonly [Kind in (typeof kinds)[number]]: readonly unknown[] },
): ServerEventBus {
  const bus = new InMemoryServerEventBus();
  let before = read();
  let timer: NodeJS.Timeout | undefined;
  const compare = (): void => {
    const now = read();
    for (const kind of kinds)
      if (now[kind].some((list, at) => list !== before[kind][at])) bus.publish({ kind });
    before = now;
  };
  return {
    publish: (event) => bus.publish(event),
    subscribe(listener) {
      if (timer === undefined) {
        before = read();
        timer = setInterval(compare, pollMs).unref();
      }
      const unsubscribe = bus.subscribe(listener);
      return () => {
        unsubscribe();
        if (bus.listenerCount > 0) return;
        clearInterval(timer);
        timer = undefined;
      };
    },
  };
}
