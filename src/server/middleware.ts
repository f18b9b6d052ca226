import type { MiddlewareHandler } from "hono";
import type { Gate } from "./access/gate.ts";
import type { RequestEntry } from "./request-entry.ts";
import type { ServerEnv } from "./route.ts";

type Middleware = MiddlewareHandler<ServerEnv>;

/** Tells of every request once its reply has begun. */
export function reportTo(onRequest: (entry: RequestEntry) => void): Middleware {
  return async (context, next) => {
    const started = performance.now();
    await next();
    const { method, path } = context.req;
    const principal = context.get("principal")?.id;
    onRequest({
      method,
      path,
      status: context.res.status,
      duration_ms: performance.now() - started,
      ...(principal === undefined ? {} : { principal }),
    });
  };
}

/** Lets allowed foreign pages read what comes back, refusals too, and their browsers ask what they may send. */
export function shareWithPages(gate: Gate): Middleware {
  return async (context, next) => {
    await next();
    const { req, res } = context;
    const shared = gate.crossOriginHeaders(req.header("origin"));
    if (shared === undefined) return;
    const asks = req.method === "OPTIONS" && req.header("access-control-request-method") !== undefined;
    for (const [name, value] of Object.entries({ ...shared, ...readable, ...(asks ? preflight : {}) })) {
      res.headers.set(name, value);
    }
  };
}

/** Lets a request through to the routes, which then know who asks, or refuses it. */
export function checkAccess(gate: Gate): Middleware {
  return async (context, next) => {
    const { req, env } = context;
    const socket = env?.incoming?.socket;
    const principal = await gate.check({
      method: req.method,
      path: req.path,
      headers: req.raw.headers,
      host: req.header("host") ?? new URL(req.url).host,
      localAddress: socket?.localAddress ?? "127.0.0.1",
      remoteAddress: socket?.remoteAddress ?? "",
    });
    if (principal !== undefined) context.set("principal", principal);
    await next();
  };
}

const preflight = {
  "access-control-allow-methods": "GET, POST, DELETE",
  // A star stands for those that `auth` of the configuration asks for; not for the first, nor in older browsers.
  "access-control-allow-headers": "authorization, content-type, idempotency-key, last-event-id, *",
  "access-control-max-age": "600",
};

// A page may read only what it is told of.
const readable = { "access-control-expose-headers": "retry-after" };
