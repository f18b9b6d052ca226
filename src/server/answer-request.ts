import { origins } from "../app/runtime/observers.ts";
import { streamHeader } from "../protocol/routes/route.ts";
import { readTraceContext, type TraceContext, traceIdsOf } from "../protocol/tracing.ts";
import type { Gate } from "./access/access.ts";
import type { AnswerRequest, ServerContext } from "./route.ts";

export interface AnswerOptions {
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
