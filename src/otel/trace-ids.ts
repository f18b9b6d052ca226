import {
  type Context,
  context,
  createTraceState,
  isSpanContextValid,
  ROOT_CONTEXT,
  type SpanContext,
  trace,
} from "@opentelemetry/api";
import { readTraceContext, type TraceContext, traceIdsOf } from "../protocol/tracing.ts";

/** The source of an SDK's span ids: its option `idGenerator`. */
export interface IdGenerator {
  generateTraceId(): string;
  generateSpanId(): string;
}

/** The seed of the span that starts now: the SDK requests its ids during the start. */
let seed: string | undefined;

/**
 * Starts a span with the same ids in every process whose SDK has `createIdGenerator()`: the spans of a killed process and
 * of the next one then form one trace.
 */
export function withSeed<Value>(of: string, begin: () => Value): Value {
  seed = of;
  try {
    return begin();
  } finally {
    seed = undefined;
  }
}

/**
 * Creates ids for the SDK's tracer provider: kit's spans get the same ids in every process, other spans random ids.
 * `kit start --otel` sets it.
 *
 * @example
 * import { TracerProvider } from "@opentelemetry/sdk-trace";
 * import { createIdGenerator } from "kit/otel";
 *
 * const provider = new TracerProvider({ idGenerator: createIdGenerator() });
 */
export function createIdGenerator(): IdGenerator {
  return {
    generateTraceId: () => (seed === undefined ? random(16) : digest(seed, 4)),
    generateSpanId: () => (seed === undefined ? random(8) : digest(seed, 2)),
  };
}

/** Returns the same id for the same text. Cheap: ids of other texts collide only by chance, but it hides no secret. */
function digest(text: string, words: 2 | 4): string {
  let one = 0xdeadbeef ^ words;
  let other = 0x41c6ce57 ^ words;
  for (let at = 0; at < text.length; at += 1) {
    const code = text.charCodeAt(at);
    one = Math.imul(one ^ code, 2654435761);
    other = Math.imul(other ^ code, 1597334677);
  }
  let id = "";
  for (let word = 0; word < words; word += 1) {
    one = Math.imul(one ^ (one >>> 16), 2246822507) ^ Math.imul(other ^ (other >>> 13), 3266489909);
    other = Math.imul(other ^ (other >>> 16), 2246822507) ^ Math.imul(one ^ (one >>> 13), 3266489909);
    id += (one >>> 0).toString(16).padStart(8, "0");
  }
  return /^0+$/.test(id) ? `${id.slice(1)}1` : id;
}

function random(bytes: number): string {
  let text = "";
  for (const byte of crypto.getRandomValues(new Uint8Array(bytes)))
    text += byte.toString(16).padStart(2, "0");
  return /^0+$/.test(text) ? random(bytes) : text;
}

/** The context with the headers' span as its parent; the root context without a valid one. */
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

/** The headers that pass a span on; `undefined` without a trace. */
export function toHeaders(span: SpanContext | undefined): TraceContext | undefined {
  if (span === undefined || !isSpanContextValid(span)) return undefined;
  const flags = (span.traceFlags & 0xff).toString(16).padStart(2, "0");
  const traceparent = `00-${span.traceId}-${span.spanId}-${flags}`;
  const tracestate = span.traceState?.serialize();
  return tracestate === undefined || tracestate === "" ? { traceparent } : { traceparent, tracestate };
}

/**
 * Returns the trace headers of the caller's active span; `undefined` without one.
 *
 * @example
 * import { KitClient } from "kit/client";
 * import { activeTrace } from "kit/otel";
 *
 * const client = new KitClient({ baseUrl: "http://localhost:4000", trace: activeTrace });
 */
export function activeTrace(): TraceContext | undefined {
  return toHeaders(trace.getSpanContext(context.active()));
}
