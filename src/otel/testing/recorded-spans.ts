import type { Tracer } from "@opentelemetry/api";
import {
  InMemorySpanExporter,
  type ReadableSpan,
  SimpleSpanProcessor,
  TracerProvider,
} from "@opentelemetry/sdk-trace";
import { createIdGenerator } from "../trace-ids.ts";

/** A tracer of the real SDK, and what it has exported. */
export interface RecordedSpans {
  readonly tracer: Tracer;
  spans(): readonly ReadableSpan[];
  /** Each span with the names of those above it: `invoke_agent a > chat m`. */
  paths(): readonly string[];
  withName(name: string): ReadableSpan;
}

export function recordSpans(how: { readonly sameIds?: boolean } = {}): RecordedSpans {
  const exporter = new InMemorySpanExporter();
  const provider = new TracerProvider({
    spanProcessors: [new SimpleSpanProcessor({ exporter })],
    ...(how.sameIds === true ? { idGenerator: createIdGenerator() } : {}),
  });
  const spans = (): readonly ReadableSpan[] => exporter.getFinishedSpans();
  return {
    tracer: provider.getTracer("kit"),
    spans,
    paths: () => pathsOf(spans()),
    withName(name) {
      const found = spans().find((span) => span.name === name);
      if (found === undefined) throw new Error(`There is no span "${name}": ${pathsOf(spans()).join("; ")}`);
      return found;
    },
  };
}

function pathsOf(spans: readonly ReadableSpan[]): readonly string[] {
  const byId = new Map(spans.map((span) => [span.spanContext().spanId, span]));
  const pathOf = (span: ReadableSpan): string => {
    const parent = byId.get(span.parentSpanContext?.spanId ?? "");
    return parent === undefined ? span.name : `${pathOf(parent)} > ${span.name}`;
  };
  return spans.map(pathOf).sort();
}

/** Attributes that no event holds, so that a replay lacks them. */
const unstored = [
  "gen_ai.tool.description",
  "gen_ai.tool.definitions",
  "gen_ai.agent.description",
  "server.address",
  "server.port",
];

/**
 * The data that depends neither on the exporter nor on what no event holds: names, parents, times, attributes, status;
 * ids on request.
 */
export function shapeOf(spans: readonly ReadableSpan[], ids = false): readonly unknown[] {
  const paths = new Map(spans.map((span) => [span.spanContext().spanId, span.name]));
  return spans
    .map((span) => ({
      name: span.name,
      parent: paths.get(span.parentSpanContext?.spanId ?? ""),
      kind: span.kind,
      start: span.startTime,
      end: span.endTime,
      attributes: Object.fromEntries(
        Object.entries(span.attributes).filter(([name]) => !unstored.includes(name)),
      ),
      status: span.status,
      events: span.events.map(({ name, time, attributes }) => ({ name, time, attributes })),
      ...(ids ? { id: span.spanContext().spanId, trace: span.spanContext().traceId } : {}),
    }))
    .sort((one, other) => (JSON.stringify(one) < JSON.stringify(other) ? -1 : 1));
}
