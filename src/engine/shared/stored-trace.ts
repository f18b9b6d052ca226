import { isRecord } from "../../base/is-record.ts";
import { readTraceContext, type TraceContext } from "../../protocol/trace-context.ts";
import type { WorkCause } from "../../protocol/work-cause.ts";

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

/** The trace of a row; a stored value that is not a trace is ignored. */
export function fromStoredTrace(stored: string | null): { readonly trace?: TraceContext } {
  const trace = readTraceContext(...((stored ?? "").split("\n").slice(0, 2) as [string, string?]));
  return trace === undefined ? {} : { trace };
}

/** The cause of a row; a stored value that is not a cause of this version is ignored. */
export function causeOfStored(stored: string | null): { readonly cause?: WorkCause } {
  const text = stored?.split("\n")[2];
  if (text === undefined) return {};
  try {
    const cause: unknown = JSON.parse(text);
    return isCause(cause) ? { cause } : {};
  } catch {
    return {};
  }
}

/** The texts that a cause of each type has. Engines load no schema library. */
const texts: Readonly<Record<WorkCause["type"], readonly string[]>> = {
  webhook: ["webhook", "delivery_id"],
  run: ["run_id"],
  prompt: ["agent", "instance_id", "session", "operation_id"],
  schedule: ["schedule"],
  sender: ["principal"],
};

function isCause(value: unknown): value is WorkCause {
  if (!isRecord(value) || typeof value.type !== "string" || !Object.hasOwn(texts, value.type)) return false;
  return texts[value.type as WorkCause["type"]].every((name) => typeof value[name] === "string");
}
