import type { Hono } from "hono";
import type { Result, Router } from "hono/router";
import { maskValue } from "../agents/secrets.ts";
import { origins } from "../app/runtime/observers.ts";
import { KitError } from "../base/kit-error.ts";
import { toA2aError } from "../interfaces/a2a/error.ts";
import { errorCodes } from "../protocol/error-code.ts";
import type { ErrorEnvelope } from "../protocol/errors.ts";
import { streamHeader } from "../protocol/routes/route.ts";
import { readTraceContext, type TraceContext, traceIdsOf } from "../protocol/tracing.ts";
import type { Gate } from "./access/access.ts";
import { isPagePath, isPageRequest } from "./console/console-request.ts";
import type { Console } from "./console/create-console.ts";
import {
  emptyReply,
  type ReplyParts,
  toErrorEnvelope,
  toErrorReply,
  toOpenAiReply,
  toPlainReply,
  toRpcReply,
} from "./reply.ts";
import type { Route, RouteServer, ServerContext, ServerEnv } from "./route.ts";

/** Answers a request with the result of `work` if the gate admits it; otherwise with the refusal. */
type AnswerRequest = (context: ServerContext, work: () => Response | Promise<Response>) => Promise<Response>;

interface MountOptions extends RouteServer {
  readonly answer: AnswerRequest;
  /** The web page, if the server has one. */
  readonly page?: Console | undefined;
}

/** Mounts routes. Other methods on their paths answer 405, all other paths 404. */
export function mountRoutes(
  app: Hono<ServerEnv>,
  routes: readonly Route[],
  { answer, page, ...server }: MountOptions,
): void {
  const byPath = Map.groupBy(routes, (route) => route.path.replace(/\{(\w+)\}/g, ":$1"));
  for (const [path, ofPath] of byPath) {
    // Other paths of the page are no routes.
    const home = path === "/" ? page : undefined;
    const allow = allowedMethods(ofPath);
    const byMethod = new Map<string, Route>(ofPath.map((route) => [route.method, route]));
    app.all(path, async (context) => {
      const { method, raw } = context.req;
      const route = byMethod.get(method === "HEAD" ? "GET" : method);
      const reply = await answer(context, () => {
        if (home !== undefined && isPageRequest({ method, path, headers: raw.headers }))
          return home.answer({ path, headers: raw.headers });
        if (route !== undefined) return route.answer(context, server);
        if (method === "OPTIONS") return emptyReply({ allow: allow.join(", ") });
        throw notAllowed(allow);
      });
      if (reply.status < 400) return reply;
      if (route?.hasPlainErrors) return await toPlainReply(reply);
      if (ofPath.some(({ hasOpenAiErrors }) => hasOpenAiErrors)) return await toOpenAiReply(reply);
      const rpc = ofPath.find(({ hasRpcErrors }) => hasRpcErrors)?.hasRpcErrors;
      return rpc === undefined ? reply : await toRpcReply(reply, rpc === "a2a" ? toA2aError : undefined);
    });
  }
  app.all("*", (context) =>
    answer(context, () => {
      const { method, path, raw } = context.req;
      if (page !== undefined && isPagePath(path)) {
        if (method === "GET" || method === "HEAD") return page.answer({ path, headers: raw.headers });
        if (method === "OPTIONS") return emptyReply({ allow: pageMethods.join(", ") });
        throw notAllowed(pageMethods);
      }
      throw new KitError({
        code: "not_found",
        message: "There is no such route: GET /openapi.json lists them.",
      });
    }),
  );
}

const pageMethods = ["GET", "HEAD", "OPTIONS"];

function notAllowed(allow: readonly string[]): KitError {
  return new KitError({
    code: "method_not_allowed",
    message: "This method is not allowed here.",
    meta: { allow },
  });
}

function allowedMethods(routes: readonly Route[]): string[] {
  const methods = routes.flatMap(({ method }) => (method === "GET" ? ["GET", "HEAD"] : [method]));
  return [...new Set([...methods, "OPTIONS"])];
}

/**
 * Hono's routers try every rule that could match, because handlers can call the next one. Here a path has one handler.
 * A fixed path is looked up first, so that `/api/specs/graph` never means the spec with the id "graph"; the others are
 * compared part by part. `*` matches if no other path does.
 */
export function createPathRouter<Handler>(): Router<Handler> {
  const fixed = new Map<string, Result<Handler>>();
  const patterns = new Map<number, Pattern<Handler>[]>();
  let rest: Result<Handler> = [[]];
  return {
    name: "PathRouter",
    add(_, path, handler) {
      const result: Result<Handler> = [[[handler, {}]]];
      if (path === "/*") rest = result;
      else if (!path.includes("/:")) fixed.set(path, result);
      else {
        const parts = path.split("/");
        patterns.set(parts.length, [...(patterns.get(parts.length) ?? []), { parts, result }]);
      }
    },
    match(_, path) {
      const fixedRoute = fixed.get(path);
      if (fixedRoute !== undefined) return fixedRoute;
      const parts = path.split("/");
      for (const pattern of patterns.get(parts.length) ?? [])
        if (isMatch(pattern.parts, parts)) return pattern.result;
      return rest;
    },
  };
}

interface Pattern<Handler> {
  readonly parts: readonly string[];
  readonly result: Result<Handler>;
}

function isMatch(pattern: readonly string[], parts: readonly string[]): boolean {
  for (const [at, part] of parts.entries()) {
    const expected = pattern[at] ?? "";
    if (expected.startsWith(":") ? part === "" : part !== expected) return false;
  }
  return true;
}

// Hono's default decodes the path before it matches; kit decodes ids once, after it has split the path.
export function pathAsSent(request: Request): string {
  const start = request.url.indexOf("/", request.url.indexOf("//") + 2);
  const end = request.url.indexOf("?", start);
  return request.url.slice(start, end === -1 ? undefined : end);
}

interface AnswerOptions {
  readonly gate: Gate;
  /** The error reply for anything thrown. */
  readonly toResponse: (error: unknown) => Response;
  /** Receives every request when its reply has started. */
  readonly onRequest: ((entry: RequestEntry) => void) | undefined;
}

/** Creates the handler around every route: access check, trace, CORS headers, log entry. It is one function, because each layer would cost time per request. */
export function createAnswer({ gate, toResponse, onRequest }: AnswerOptions): AnswerRequest {
  return async (context, work) => {
    const started = onRequest === undefined ? 0 : performance.now();
    let reply: Response;
    const { req, env } = context;
    const { headers } = req.raw;
    const parent = headers.get("traceparent");
    // The trace position of the sender.
    const trace = parent === null ? undefined : readTraceContext(parent, headers.get("tracestate"));
    try {
      const socket = env?.incoming?.socket ?? env?.connection;
      const principal = await gate.check({
        method: req.method,
        path: req.path,
        headers,
        host: headers.get("host") ?? new URL(req.url).host,
        localAddress: socket?.localAddress ?? "127.0.0.1",
        remoteAddress: socket?.remoteAddress ?? "",
      });
      if (principal !== undefined) context.set("principal", principal);
      reply = await (trace === undefined ? work() : origins.run(trace, work));
    } catch (error) {
      reply = toResponse(error);
    }
    const origin = headers.get("origin");
    if (origin !== null) shareWithPages(gate.crossOriginHeaders(origin), context, reply);
    if (onRequest !== undefined) {
      const { method, path } = req;
      const principal = context.get("principal")?.id;
      onRequest({
        method,
        path,
        status: reply.status,
        duration_ms: performance.now() - started,
        ...(principal === undefined ? {} : { principal }),
        ...(trace === undefined ? {} : idsOf(trace)),
      });
    }
    return reply;
  };
}

function idsOf(trace: TraceContext): Pick<RequestEntry, "trace_id" | "span_id"> {
  const { trace_id, span_id } = traceIdsOf(trace);
  return { trace_id, span_id };
}

/** Adds CORS headers, so that allowed pages can read replies, errors included, and browsers' preflights succeed. */
function shareWithPages(
  shared: ReturnType<Gate["crossOriginHeaders"]>,
  { req }: ServerContext,
  reply: Response,
): void {
  if (shared === undefined) return;
  const isPreflight = req.method === "OPTIONS" && req.header("access-control-request-method") !== undefined;
  for (const [name, value] of Object.entries({ ...shared, ...readable, ...(isPreflight ? preflight : {}) })) {
    reply.headers.set(name, value);
  }
}

const preflight = {
  "access-control-allow-methods": "GET, POST, DELETE",
  // The star allows headers that the configuration's `auth` reads. It does not cover `authorization`, and older browsers ignore it.
  "access-control-allow-headers": `authorization, content-type, idempotency-key, last-event-id, ${streamHeader}, traceparent, tracestate, *`,
  "access-control-max-age": "600",
};

// Without this header, a page cannot read these.
const readable = { "access-control-expose-headers": `retry-after, www-authenticate, ${streamHeader}` };

/** One answered request, for a log. It has no query and no body, because both can be private. */
export interface RequestEntry {
  readonly method: string;
  readonly path: string;
  readonly status: number;
  readonly duration_ms: number;
  /** The id of the sender's principal; absent if the server requires no key. */
  readonly principal?: string;
  /** From the request's `traceparent`. */
  readonly trace_id?: string;
  readonly span_id?: string;
}

interface ReplyOptions {
  /** Adds `dev` with stack and hint to every error. */
  readonly dev?: boolean;
  /** Receives the cause of each `internal_error`. */
  readonly onError?: (error: unknown) => void;
}

/** Creates the error replies, without secrets, and reports errors that clients did not cause to `onError`. */
export function createReplies(options: ReplyOptions, mask: (text: string) => string) {
  const dev = options.dev ?? false;
  const masked = <Value>(value: Value): Value => maskValue(value, mask);
  const report = (error: unknown): void => {
    // The service reports why a run failed, in the process that ran it; the record has no more details.
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
  const toEnvelope = (error: unknown): ErrorEnvelope => {
    const envelope = toErrorEnvelope(error, { dev, masked });
    if (envelope.error.type === "internal_error") report(error);
    return envelope;
  };
  return { masked, report, toReply, toResponse, toEnvelope };
}
