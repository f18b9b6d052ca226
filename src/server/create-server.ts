import type { IncomingMessage, ServerResponse } from "node:http";
import { Hono } from "hono";
import { maskValue } from "../agents/secrets.ts";
import type { KitConfig } from "../app/config/config-schema.ts";
import type { Exposure, RateLimit } from "../app/config/server-schema.ts";
import type { Service } from "../app/service/service.ts";
import { KitError } from "../base/kit-error.ts";
import { defined } from "../base/record.ts";
import type { Project } from "../project/project.ts";
import type { AuthorizeHook } from "../protocol/access.ts";
import { errorCodes } from "../protocol/error-code.ts";
import { type AccessOptions, Gate, isLoopbackAddress } from "./access/access.ts";
import { createAuthorization } from "./access/authorize.ts";
import { createConnectionSlots } from "./access/connection-slots.ts";
import { createAnswer, type RequestEntry } from "./answer-request.ts";
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
import { createNodeAnswers } from "./nodes/answer-nodes.ts";
import { type ReplyParts, toErrorEnvelope, toErrorReply } from "./reply.ts";
import { type Connection, createPathRouter, mountRoutes, type Route, type ServerEnv } from "./route.ts";
import { bindAgentRoutes, bindPromptRoutes } from "./routes/agents.ts";
import { bindApprovalRoutes } from "./routes/approvals.ts";
import { bindDescriptionRoutes, bindHomeRoutes } from "./routes/home.ts";
import { bindFileRoutes, bindGuidelineRoutes, bindSpecRoutes } from "./routes/project.ts";
import { bindClusterRoutes, bindDispatchRoutes, bindRunRoutes } from "./routes/runs.ts";
import { bindServerRoutes } from "./routes/server.ts";
import { bindSessionRoutes } from "./routes/sessions.ts";
import { bindWebhookRoutes } from "./routes/webhooks.ts";
import { bindWorkflowRoutes } from "./routes/workflows.ts";
import { createReach, type ServiceContext } from "./service-context.ts";
import { createSocketServer } from "./sockets/socket-server.ts";
import { createEventStreams } from "./streams/event-streams.ts";

export interface ServerOptions {
  /** Its opener closes it, after the server. */
  readonly project: Project;
  /** Agents and workflows; without it, there are no routes for them. Its opener closes it, after the server. */
  readonly service?: Service;
  readonly access?: AccessOptions;
  /** Asked before anything is done, and about each name and record that a list would give. */
  readonly authorize?: AuthorizeHook;
  /** Counted per principal, or per address where no key is asked for. */
  readonly rateLimit?: RateLimit;
  readonly limits?: Partial<ServerLimits>;
  /** Which agents requests reach; default `declared`: those whose file says `triggers = { webhook: true }`. */
  readonly expose?: Exposure;
  /**
   * Adds `dev` with stack and hint to every error, and on a loopback address serves agents that declare
   * nothing, too. Never for a server that others reach.
   */
  readonly dev?: boolean;
  /**
   * The web page at `/`, with its screens below `/console/`; default true. `read`: it looks and changes nothing, and the
   * server refuses what its page would change. False: there is none.
   */
  readonly console?: ConsoleMode;
  /** The configuration that the server was made of: `GET /server` shows it, without its secrets. */
  readonly configuration?: KitConfig;
  readonly onRequest?: (entry: RequestEntry) => void;
  /**
   * Hears, once for each page and each name of the server, that a browser's request was refused because of its
   * `Origin` or `Host`, and which setting allows it: `A page of https://app.example was refused. To allow it, set
   * server.allowed_origins = ["https://app.example"].`
   */
  readonly onRefused?: (advice: string) => void;
  /** Hears what became an `internal_error` of a request; why a run failed, the service's own `onError` hears. */
  readonly onError?: (error: unknown) => void;
  /**
   * Takes keys out of every text of a reply, a frame and an entry for a log; default: what the service's
   * application does with its own.
   */
  readonly mask?: (text: string) => string;
}

/** The HTTP face of a project. */
export interface KitServer {
  /** Answers `Request`s without a socket, too. */
  readonly app: Hono<ServerEnv>;
  /**
   * Answers a request without a socket, for frameworks that hand on `Request`s: Hono, Next.js. Its URL's path is one of the
   * server's routes, without the prefix of a framework. Without a `connection`, names of hosts other than this machine's must be in
   * `access.allowedHosts`.
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
   * Answers a request of Node's HTTP server, for frameworks above that: Express, Fastify. Nothing may have read its body, and its
   * `url` is one of the server's routes.
   */
  handle(incoming: IncomingMessage, outgoing: ServerResponse): void;
  /**
   * Starts listening; gives the address, with the real port where 0 was asked for. Throws `forbidden`
   * for a public address that no key protects, and `conflict` when the port is taken.
   */
  listen(options?: ListenOptions): Promise<ListenAddress>;
  /**
   * Stops accepting, ends the streams that can be taken up again, lets replies and prompts under way
   * finish, and closes every connection.
   */
  close(): Promise<void>;
}

/**
 * Creates the server of a project, and of its agents and workflows where it is given a service.
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
  const masked = <Value>(value: Value): Value => maskValue(value, mask);
  const onRequest = options.onRequest && ((entry: RequestEntry) => options.onRequest?.(masked(entry)));
  const onRefused = options.onRefused && ((advice: string) => options.onRefused?.(mask(advice)));
  const limits = { ...defaultLimits, ...options.limits };
  const { console: consoleMode = true } = options;
  const page = consoleMode === false ? undefined : createConsole({ isReadOnly: consoleMode === "read" });
  const gate = new Gate(
    {
      ...options.access,
      rateLimit: options.rateLimit,
      onRefused,
      isPage: page && isPageRequest,
      refuse: consoleMode === "read" ? checkLooksOnly : undefined,
    },
    limits,
  );
  const dev = options.dev ?? false;
  const report = (error: unknown): void => {
    // Why a run failed is told by the service, where it was worked on; its record has no more to tell.
    if (error instanceof KitError && error.meta?.run_id !== undefined) return;
    options.onError?.(error);
  };
  const toReply = (error: unknown): ReplyParts => {
    const reply = toErrorReply(error, { dev, masked });
    if (reply.status === errorCodes.internal_error.status) report(error);
    return reply;
  };
  const toResponse = (error: unknown): Response => {
    const { body, ...rest } = toReply(error);
    return new Response(body, rest);
  };
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
    toEnvelope(error) {
      const envelope = toErrorEnvelope(error, { dev, masked });
      if (envelope.error.type === "internal_error") report(error);
      return envelope;
    },
  };
  const app = new Hono<ServerEnv>({ getPath: pathAsSent, router: createPathRouter() });
  const routes = [
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
    ...(context === undefined ? [] : bindServiceRoutes(context)),
  ];
  const answer = createAnswer({ gate, toResponse, onRequest });
  mountRoutes(app, [...routes, ...bindDescriptionRoutes(routes)], { limits, masked, answer, page });
  let listener: Listener | undefined;
  // Platforms that hand on requests have no server of Node's.
  const listening = (): Listener => {
    if (listener !== undefined) return listener;
    const sockets = context && createSocketServer(context, { gate, ...defined({ onRequest }) });
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
    async listen({ host = "127.0.0.1", port = 2024 } = {}) {
      gate.checkBinding(host);
      isOpen = dev && isLoopbackAddress(host);
      const address = await listening().listen({ host, port });
      await service?.nodes?.announce(reachableAt(address));
      return address;
    },
    async close() {
      const closed = listener?.close();
      streams.close();
      await closed;
    },
  };
}

/** The routes that a server has only where there is a service behind it. */
function bindServiceRoutes(context: ServiceContext): readonly Route[] {
  return [
    ...bindAgentRoutes(context),
    ...bindApprovalRoutes(context),
    ...bindPromptRoutes(context),
    ...bindDispatchRoutes(context),
    ...bindClusterRoutes(context),
    ...bindSessionRoutes(context),
    ...bindWorkflowRoutes(context),
    ...bindRunRoutes(context),
    ...bindWebhookRoutes(context),
  ];
}

// The default decodes before it matches; ids are to be decoded once, after the path was split.
function pathAsSent(request: Request): string {
  const start = request.url.indexOf("/", request.url.indexOf("//") + 2);
  const end = request.url.indexOf("?", start);
  return request.url.slice(start, end === -1 ? undefined : end);
}
