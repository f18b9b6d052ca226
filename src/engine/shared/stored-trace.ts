import { readTraceContext, type TraceContext } from "../../protocol/trace-context.ts";
import { type WorkCause, workCauseSchema } from "../../protocol/work-cause.ts";

/** The trace and the cause of a piece of work, which its row keeps in one column. */
export interface WorkOrigin {
  readonly trace?: TraceContext | undefined;
  readonly cause?: WorkCause | undefined;
}

/**
 * Where work stands in the trace of its sender, and what began it: the two headers and the cause as JSON, a line each;
 * null where there is neither. Earlier versions read the first two lines only.
 */
export function toStoredTrace({ trace, cause }: WorkOrigin): string | null {
  if (trace === undefined && cause === undefined) return null;
  const { traceparent = "", tracestate } = trace ?? {};
  if (cause === undefined) return tracestate === undefined ? traceparent : `${traceparent}\n${tracestate}`;
  return `${traceparent}\n${tracestate ?? ""}\n${JSON.stringify(cause)}`;
}

/** The trace of a row; a stored value that is no trace is ignored. */
export function fromStoredTrace(stored: string | null): { readonly trace?: TraceContext } {
  const trace = readTraceContext(...((stored ?? "").split("\n").slice(0, 2) as [string, string?]));
  return trace === undefined ? {} : { trace };
}

/** The cause of a row; a stored value that is no cause of this version is ignored. */
export function causeOfStored(stored: string | null): { readonly cause?: WorkCause } {
  const text = stored?.split("\n")[2];
  if (text === undefined) return {};
  try {
    const { data } = workCauseSchema.safeParse(JSON.parse(text));
    return data === undefined ? {} : { cause: data };
  } catch {
    return {};
  }
}
