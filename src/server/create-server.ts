import type { HttpBindings } from "@hono/node-server";
import { Hono, type MiddlewareHandler } from "hono";
import { KitError } from "../base/kit-error.ts";
import type { Project } from "../project/project.ts";
import { errorCodes } from "../protocol/error-code.ts";
import { type Access, type AccessOptions, createAccess } from "./access/access.ts";
import { toErrorReply } from "./error-reply.ts";
import { defaultLimits, type ServerLimits } from "./limits.ts";
import { createListener, type ListenAddress, type ListenOptions } from "./listen.ts";
import { mountRoutes } from "./mount-routes.ts";
import { emptyReply, type ReplyParts } from "./reply.ts";
import { guidelineRoutes } from "./routes/guidelines.ts";
import { healthRoutes } from "./routes/health.ts";
import { homeRoutes } from "./routes/home.ts";
import { openApiRoutes } from "./routes/openapi.ts";
import { specRoutes } from "./routes/specs.ts";

/** One answered request, for a log. Holds no query and no body, since both may be private. */
export interface RequestEntry {
  readonly method: string;
  readonly path: string;
  readonly status: number;
  readonly duration_ms: number;
}

export interface ServerOptions {
  /** Whoever opened it closes it, after the server. */
  readonly project: Project;
  readonly access?: AccessOptions;
  readonly limits?: Partial<ServerLimits>;
  /** Adds `dev` with stack and hint to every error. Never for a server that others reach. */
  readonly dev?: boolean;
  readonly onRequest?: (entry: RequestEntry) => void;
  /** Hears what became an `internal_error`. */
  readonly onError?: (error: unknown) => void;
}

/** The HTTP face of a project. */
export interface KitServer {
  /** Answers `Request`s without a socket, too. */
  readonly app: Hono<{ Bindings: HttpBindings }>;
  /**
   * Starts listening; gives the address, with the real port where 0 was asked for. Throws `forbidden`
   * for a public address that nobody guards, and `conflict` when the port is taken.
   */
  listen(options?: ListenOptions): Promise<ListenAddress>;
  /** Stops accepting, lets replies under way finish, and closes every connection. */
  close(): Promise<void>;
}

export function createServer(options: ServerOptions): KitServer {
  const limits = { ...defaultLimits, ...options.limits };
  const access = createAccess(options.access ?? {});
  const dev = options.dev ?? false;
  const toReply = (error: unknown): ReplyParts => {
    const reply = toErrorReply(error, { dev });
    if (reply.status === errorCodes.internal_error.status) options.onError?.(error);
    return reply;
  };
  const toResponse = (error: unknown): Response => {
    const { body, ...rest } = toReply(error);
    return new Response(body, rest);
  };
  const app = new Hono<{ Bindings: HttpBindings }>({ getPath: pathAsSent });
  if (options.onRequest !== undefined) app.use(reportTo(options.onRequest));
  app.use(gate(access));
  const routes = [
    ...homeRoutes(options.project),
    ...healthRoutes(),
    ...guidelineRoutes(options.project),
    ...specRoutes(options.project),
  ];
  mountRoutes(app, [...routes, ...openApiRoutes(routes)], limits);
  app.notFound(() => toResponse(new KitError({ code: "not_found", message: "There is no such route." })));
  app.onError(toResponse);
  const listener = createListener({ app, limits, toReply });
  return {
    app,
    async listen({ host = "127.0.0.1", port = 2024 } = {}) {
      access.checkBinding(host);
      return await listener.listen({ host, port });
    },
    close: () => listener.close(),
  };
}

type Middleware = MiddlewareHandler<{ Bindings: HttpBindings }>;

function reportTo(onRequest: (entry: RequestEntry) => void): Middleware {
  return async (context, next) => {
    const started = performance.now();
    await next();
    const { method, path } = context.req;
    onRequest({ method, path, status: context.res.status, duration_ms: performance.now() - started });
  };
}

/** Lets a request through to the routes, or not; allowed foreign pages may read what comes back. */
function gate(access: Access): Middleware {
  return async (context, next) => {
    await access.check(context);
    const shared = access.crossOriginHeaders(context);
    if (shared === undefined) return await next();
    if (context.req.header("access-control-request-method") !== undefined) {
      return emptyReply({ ...shared, ...preflight });
    }
    await next();
    for (const [name, value] of Object.entries(shared)) context.res.headers.set(name, value);
    return undefined;
  };
}

const preflight = {
  "access-control-allow-methods": "GET, POST",
  "access-control-allow-headers": "authorization, content-type",
  "access-control-max-age": "600",
};

// The default decodes before it matches; ids are to be decoded once, after the path was split.
function pathAsSent(request: Request): string {
  const start = request.url.indexOf("/", request.url.indexOf("//") + 2);
  const end = request.url.indexOf("?", start);
  return request.url.slice(start, end === -1 ? undefined : end);
}
