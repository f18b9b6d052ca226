import { origins } from "../app/runtime/origins.ts";
import type { Principal } from "../protocol/access.ts";
import { readTraceContext, type TraceContext, traceIdsOf } from "../protocol/trace-context.ts";
import type { Gate } from "./access/gate.ts";
import type { AnswerRequest, ServerContext } from "./route.ts";

export interface AnswerOptions {
  readonly gate: Gate;
  /** The error reply for anything thrown. */
  readonly toResponse: (error: unknown) => Response;
  /** Told of every request once its reply has begun. */
  readonly onRequest: ((entry: RequestEntry) => void) | undefined;
}

/** The work around every route. One function, because each layer costs every request time. */
export function createAnswer({ gate, toResponse, onRequest }: AnswerOptions): AnswerRequest {
  return async (context, work) => {
    const started = onRequest === undefined ? 0 : performance.now();
    let reply: Response;
    const trace = traceOf(context.req);
    try {
      const principal = await checkAccess(gate, context);
      if (principal !== undefined) context.set("principal", principal);
      reply = await (trace === undefined ? work() : origins.run(trace, work));
    } catch (error) {
      reply = toResponse(error);
    }
    shareWithPages(gate, context, reply);
    if (onRequest !== undefined) {
      const { method, path } = context.req;
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

/** Where who asks stands in a trace. */
function traceOf({ raw: { headers } }: ServerContext["req"]): TraceContext | undefined {
  const parent = headers.get("traceparent");
  return parent === null ? undefined : readTraceContext(parent, headers.get("tracestate"));
}

function idsOf(trace: TraceContext): Pick<RequestEntry, "trace_id" | "span_id"> {
  const { trace_id, span_id } = traceIdsOf(trace);
  return { trace_id, span_id };
}

/** Lets a request through to the routes, which then know who asks, or refuses it. */
function checkAccess(gate: Gate, { req, env }: ServerContext): Promise<Principal | undefined> {
  const socket = env?.incoming?.socket;
  return gate.check({
    method: req.method,
    path: req.path,
    headers: req.raw.headers,
    host: req.header("host") ?? new URL(req.url).host,
    localAddress: socket?.localAddress ?? "127.0.0.1",
    remoteAddress: socket?.remoteAddress ?? "",
  });
}

/** Lets allowed foreign pages read what comes back, refusals too, and their browsers ask what they may send. */
function shareWithPages(gate: Gate, { req }: ServerContext, reply: Response): void {
  const shared = gate.crossOriginHeaders(req.header("origin"));
  if (shared === undefined) return;
  const asks = req.method === "OPTIONS" && req.header("access-control-request-method") !== undefined;
  for (const [name, value] of Object.entries({ ...shared, ...readable, ...(asks ? preflight : {}) })) {
    reply.headers.set(name, value);
  }
}

const preflight = {
  "access-control-allow-methods": "GET, POST, DELETE",
  // A star stands for those that `auth` of the configuration asks for; not for the first, nor in older browsers.
  "access-control-allow-headers":
    "authorization, content-type, idempotency-key, last-event-id, traceparent, tracestate, *",
  "access-control-max-age": "600",
};

// A page may read only what it is told of.
const readable = { "access-control-expose-headers": "retry-after" };

/** One answered request, for a log. Holds no query and no body, since both may be private. */
export interface RequestEntry {
  readonly method: string;
  readonly path: string;
  readonly status: number;
  readonly duration_ms: number;
  /** The id of the principal whose key the request carried; absent where no key is asked for. */
  readonly principal?: string;
  /** From the request's `traceparent`. */
  readonly trace_id?: string;
  readonly span_id?: string;
}
