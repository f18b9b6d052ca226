import {
  type Context,
  context,
  createTraceState,
  isSpanContextValid,
  ROOT_CONTEXT,
  type SpanContext,
  trace,
} from "@opentelemetry/api";
import { readTraceContext, type TraceContext, traceIdsOf } from "../protocol/trace-context.ts";

/** The context whose spans are children of what the headers name; the root's where they name nothing. */
export function toContext(headers: { readonly [Name in keyof TraceContext]?: string | undefined }): Context {
  const read = readTraceContext(headers.traceparent, headers.tracestate);
  if (read === undefined) return ROOT_CONTEXT;
  const { trace_id, span_id, isSampled } = traceIdsOf(read);
  return trace.setSpanContext(ROOT_CONTEXT, {
    traceId: trace_id,
    spanId: span_id,
    traceFlags: isSampled ? 1 : 0,
    isRemote: true,
    ...(read.tracestate === undefined ? {} : { traceState: createTraceState(read.tracestate) }),
  });
}

/** The headers that hand a span on; undefined where nothing is traced. */
export function toHeaders(span: SpanContext | undefined): TraceContext | undefined {
  if (span === undefined || !isSpanContextValid(span)) return undefined;
  const flags = (span.traceFlags & 0xff).toString(16).padStart(2, "0");
  const traceparent = `00-${span.traceId}-${span.spanId}-${flags}`;
  const tracestate = span.traceState?.serialize();
  return tracestate === undefined || tracestate === "" ? { traceparent } : { traceparent, tracestate };
}

/**
 * The headers of the span that is at work in the code that calls: `new KitClient({ trace: activeTrace })` hands it on
 * with every request. Undefined where nothing is traced.
 */
export function activeTrace(): TraceContext | undefined {
  return toHeaders(trace.getSpanContext(context.active()));
}
