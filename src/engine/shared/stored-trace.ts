import { readTraceContext, type TraceContext } from "../../protocol/trace-context.ts";

/** Where work stands in the trace of whoever asked for it: the two headers, a line each; null where nothing is traced. */
export function toStoredTrace(trace: TraceContext | undefined): string | null {
  if (trace === undefined) return null;
  const { traceparent, tracestate } = trace;
  return tracestate === undefined ? traceparent : `${traceparent}\n${tracestate}`;
}

/** The trace of a row; a stored value that is no trace is ignored. */
export function fromStoredTrace(stored: string | null): { readonly trace?: TraceContext } {
  const trace = readTraceContext(...((stored ?? "").split("\n") as [string, string?]));
  return trace === undefined ? {} : { trace };
}
