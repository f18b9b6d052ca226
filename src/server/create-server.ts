import type { IncomingMessage, ServerResponse } from "node:http";
import { Hono } from "hono";
import type { KitConfig } from "../app/config/config-schema.ts";
import type { Exposure, RateLimit } from "../app/config/server-schema.ts";
import type { Service } from "../app/service/service.ts";
import { defined } from "../base/record.ts";
import type { Project } from "../project/project.ts";
import type { AuthorizeHook } from "../protocol/access.ts";
import { type AccessOptions, Gate, isLoopbackAddress } from "./access/access.ts";
import { createAuthorization } from "./access/authorize.ts";
import { createConnectionSlots } from "./access/connection-slots.ts";
import {
  createAnswer,
  createPathRouter,
  createReplies,
  mountRoutes,
  pathAsSent,
  type RequestEntry,
} from "./answer-request.ts";
import { type ConsoleMode, checkLooksOnly, isPageRequest } from "./console/console-request.ts";
import { createConsole } from "./console/create-console.ts";
import { defaultLimits, type ServerLimits } from "./limits.ts";
import {
  createListener,
  type ListenAddress,
  type Listener,
  type ListenOptions,
  reachableAt,
} from "./listen.ts";
import type { McpSettings } from "./mcp/mcp-work.ts";
import { createNodeAnswers } from "./nodes/answer-nodes.ts";
import type { Connection, Route, ServerEnv } from "./route.ts";
import { bindA2aRoutes } from "./routes/a2a.ts";
import { type A2aSettings, isCardPath } from "./routes/a2a-work.ts";
import { bindAgUiRoutes } from "./routes/ag-ui.ts";
import { bindAgentRoutes, bindPromptRoutes } from "./routes/agents.ts";
import { bindApprovalRoutes } from "./routes/approvals.ts";
import { bindDescriptionRoutes, bindHomeRoutes } from "./routes/home.ts";
import { bindLoginRoutes, type Site } from "./routes/logins.ts";
import { bindMcpRoutes } from "./routes/mcp.ts";
import { bindOpenAiRoutes } from "./routes/openai.ts";
import { bindFileRoutes, bindGuidelineRoutes, bindSpecRoutes } from "./routes/project.ts";
import { bindClusterRoutes, bindDispatchRoutes, bindRunRoutes } from "./routes/runs.ts";
import { bindServerRoutes } from "./routes/server.ts";
import { bindSessionRoutes } from "./routes/sessions.ts";
import { bindUiRoutes } from "./routes/ui.ts";
import { bindWaitingRoutes } from "./routes/waiting.ts";
import { bindWebhookRoutes } from "./routes/webhooks.ts";
import { bindWorkflowRoutes } from "./routes/workflows.ts";
import { createReach, type ServiceContext } from "./service-context.ts";
import { SocketServer } from "./sockets/socket-server.ts";
import { createEventStreams } from "./streams/event-streams.ts";

export interface ServerOptions {
  /** The project; the caller closes it after the server. */
  readonly project: Project;
  /** Agents and workflows; without it, there are no routes for them. The caller closes it after the server. */
  readonly service?: Service;
  readonly access?: AccessOptions;
  /** Called before each action, and for each name and record in a list. */
  readonly authorize?: AuthorizeHook;
  /** The rate limit, per principal, or per address if the server requires no key. */
  readonly rateLimit?: RateLimit;
  readonly limits?: Partial<ServerLimits>;
  /** The agents that requests reach; default `declared`: those whose file exports `triggers = { webhook: true }`. */
  readonly expose?: Exposure;
  /**
   * Adds `dev` with stack and hint to every error, and on a loopback address also serves agents without triggers. Never
   * use it for a server that other machines reach.
   */
  readonly dev?: boolean;
  /**
   * Whether the server has its web page at `/`, with screens below `/console/`; default true. `read`: the page is
   * read-only, and the server refuses its writes.
   */
  readonly console?: ConsoleMode;
  /** How `/mcp` answers calls of agents and workflows. */
  readonly mcp?: Partial<McpSettings>;
  /** How `/a2a` answers the agents of others. */
  readonly a2a?: Partial<A2aSettings>;
  /** The address of the server as browsers type it, for logins that end there; default: its port of this machine. */
  readonly publicUrl?: string;
  /** Serves only `/mcp`, its description and the health checks. Default: every route. */
  readonly only?: "mcp" | undefined;
  /** The configuration of the server: `GET /server` shows it without its secrets. */
  readonly configuration?: KitConfig;
  readonly onRequest?: (entry: RequestEntry) => void;
  /**
   * Receives, once for each page and each host name, a text about a browser's request that was refused because of its
   * `Origin` or `Host`, with the setting that allows it: `A page of https://app.example was refused. To allow it, set
   * server.allowed_origins = ["https://app.example"].`
   */
  readonly onRefused?: (advice: string) => void;
  /** Receives the cause of each `internal_error` of a request; `onError` of the service receives those of runs. */
  readonly onError?: (error: unknown) => void;
  /**
   * Masks secrets in every text of a reply, a WebSocket frame and a log entry; default: the mask of the service's
   * application.
   */
  readonly mask?: (text: string) => string;
}

/** The HTTP server of a project. */
export interface KitServer {
  /** The Hono application; it also answers requests without a socket. */
  readonly app: Hono<ServerEnv>;
  /**
   * Answers a request without a socket, for frameworks that pass `Request` objects: Hono, Next.js. The path of its URL is
   * one of the server's routes, without the prefix of a framework. Without a `connection`, host names other than this
   * machine's must be in `access.allowedHosts`.
   *
   * @example
   * import { openProject } from "kit";
   * import { createServer } from "kit/server";
   *
   * const server = createServer({ project: await openProject({ root: "." }) });
   * const reply = await server.fetch(new Request("http://localhost/health"));
   * console.log(await reply.json());
   */
  fetch(request: Request, connection?: Connection): Promise<Response>;
  /**
   * Answers a request of Node's HTTP server, for frameworks on top of it: Express, Fastify. The framework must not have
   * read the body, and `url` is one of the server's routes.
   */
  handle(incoming: IncomingMessage, outgoing: ServerResponse): void;
  /**
   * Starts listening. Returns the address, with the real port for port 0. Throws `forbidden` for a public address
   * without a key, and `conflict` if the port is in use.
   */
  listen(options?: ListenOptions): Promise<ListenAddress>;
  /**
   * Stops accepting requests, ends the streams that clients can resume, waits for running replies and prompts, and closes
   * every connection.
   */
  close(): Promise<void>;
}

/**
 * Creates the server of a project and, with a service, of its agents and workflows.
 *
 * @example
 * import { openProject } from "kit";
 * import { createServer } from "kit/server";
 *
 * const project = await openProject({ root: "." });
 * const server = createServer({ project });
 * const { url } = await server.listen({ port: 0 });
 * console.log(await (await fetch(`${url}/api/specs`)).json());
 * await server.close();
 * await project.close();
 */
export function createServer(options: ServerOptions): KitServer {
  const { project, service, mask = service?.app.mask ?? ((text: string) => text) } = options;
  const { masked, report, toReply, toResponse, toEnvelope } = createReplies(options, mask);
  const onRequest = options.onRequest && ((entry: RequestEntry) => options.onRequest?.(masked(entry)));
  const onRefused = options.onRefused && ((advice: string) => options.onRefused?.(mask(advice)));
  const limits = { ...defaultLimits, ...options.limits };
  const { console: consoleMode = true } = options;
  const page = consoleMode === false ? undefined : createConsole({ isReadOnly: consoleMode === "read" });
  const a2a: A2aSettings = { cards: "keys", approvals: "inbox", ...options.a2a };
  const gate = new Gate(
    {
      ...options.access,
      rateLimit: options.rateLimit,
      onRefused,
      onError: report,
      isPage: page && isPageRequest,
      isOpen: a2a.cards === "public" ? isCardPath : undefined,
      refuse: consoleMode === "read" ? checkLooksOnly : undefined,
    },
    limits,
  );
  const dev = options.dev ?? false;
  const slots = createConnectionSlots({
    what: "streams",
    slots: limits.eventStreams,
    share: limits.eventStreamsPerPrincipal,
  });
  const streams = createEventStreams({
    heartbeatMs: limits.heartbeatMs,
    streamMs: limits.streamMs,
    slots,
  });
  const authorization = createAuthorization(options.authorize, limits);
  let isOpen = false;
  const reach = createReach(options.expose ?? "declared", () => isOpen);
  const context: ServiceContext | undefined = service && {
    service,
    authorization,
    reach,
    streams,
    limits,
    masked,
    toEnvelope,
  };
  const app = new Hono<ServerEnv>({ getPath: pathAsSent, router: createPathRouter() });
  let port: number | undefined;
  const site: Site = { publicUrl: options.publicUrl, port: () => port };
  const mcp = bindMcpRoutes({
    ...{ project, context, authorization, limits, streams, masked, toEnvelope },
    oauth: options.access?.oauth,
    settings: { approvals: "elicit", waitMs: 50_000, ...options.mcp },
    onError: report,
  });
  const every = [
    ...bindHomeRoutes({ project, service, authorization, reach }),
    ...bindServerRoutes({
      project,
      service,
      authorization,
      limits,
      access: options.access,
      hasAuthorize: options.authorize !== undefined,
      console: consoleMode,
      expose: options.expose ?? "declared",
      configuration: options.configuration,
    }),
    ...bindGuidelineRoutes(project, authorization, { pageLooksOnly: consoleMode === "read" }),
    ...bindSpecRoutes(project, authorization),
    ...bindFileRoutes(project, authorization),
    ...(context === undefined ? [] : bindServiceRoutes(context, { a2a, isGuarded: gate.isGuarded, site })),
    ...mcp.routes,
  ];
  const isOfMcp = ({ path }: Route): boolean =>
    mcp.routes.some((route) => route.path === path) || path.startsWith("/health");
  const routes = options.only === undefined ? every : every.filter(isOfMcp);
  const answer = createAnswer({ gate, toResponse, onRequest });
  mountRoutes(app, [...routes, ...bindDescriptionRoutes(routes)], { limits, masked, answer, page });
  let listener: Listener | undefined;
  // Platforms that pass `Request` objects have no HTTP server of Node.
  const listening = (): Listener => {
    if (listener !== undefined) return listener;
    const sockets =
      context && options.only === undefined
        ? new SocketServer(context, { gate, ...defined({ onRequest }) })
        : undefined;
    const nodes =
      service?.nodes &&
      createNodeAnswers({
        cluster: service.nodes,
        bodyBytes: Math.max(limits.bodyBytes, limits.webSocketMessageBytes),
        unreadBytes: limits.unreadBytes,
        toReply,
        onForged: (remoteAddress) => gate.count(undefined, remoteAddress),
        onError: report,
      });
    listener = createListener({ app, limits, toReply, nodes, ...defined({ sockets }) });
    return listener;
  };
  return {
    app,
    fetch: async (request, connection) => await app.fetch(request, { connection } as ServerEnv["Bindings"]),
    handle: (incoming, outgoing) => listening().handle(incoming, outgoing),
    async listen({ host = "127.0.0.1", port: asked = 2024 } = {}) {
      gate.checkBinding(host);
      isOpen = dev && isLoopbackAddress(host);
      const address = await listening().listen({ host, port: asked });
      port = address.port;
      await service?.nodes?.announce(reachableAt(address));
      return address;
    },
    async close() {
      const closed = listener?.close();
      streams.close();
      await mcp.close();
      await closed;
    },
  };
}

/** The routes of a server with a service. */
function bindServiceRoutes(
  context: ServiceContext,
  { a2a, isGuarded, site }: { readonly a2a: A2aSettings; readonly isGuarded: boolean; readonly site: Site },
): readonly Route[] {
  return [
    ...bindAgentRoutes(context),
    ...bindUiRoutes(context),
    ...bindOpenAiRoutes(context),
    ...bindAgUiRoutes(context),
    ...bindA2aRoutes({ ...context, isGuarded, settings: a2a }),
    ...bindApprovalRoutes(context),
    ...bindPromptRoutes(context),
    ...bindDispatchRoutes(context),
    ...bindClusterRoutes(context),
    ...bindSessionRoutes(context),
    ...bindWaitingRoutes(context),
    ...bindLoginRoutes(context, site),
    ...bindWorkflowRoutes(context),
    ...bindRunRoutes(context),
    ...bindWebhookRoutes(context),
  ];
}
