import type { KitEvent } from "../protocol/event.ts";
import { type TraceContext, traceIdsOf } from "../protocol/trace-context.ts";
import type { Tracing } from "../protocol/tracing.ts";

/** Operations whose trace is remembered until they end; of more, the oldest are logged without. */
const maxOpen = 10_000;

/** Writes a line for the end of every operation and run: how it went, how long it took, its trace. No content. */
export function createWorkLog(
  write: (type: string, fields: object) => void,
): (event: KitEvent, tracing: Tracing | undefined) => void {
  /** Where nothing is traced here, the trace of whoever asked. */
  const asked = new Map<string, { readonly [Name in keyof TraceContext]?: string | undefined }>();
  const failures = new Map<string, string>();
  const tracesOf = (event: KitEvent, tracing: Tracing | undefined): object => {
    const { traceparent } = tracing?.of(event) ?? asked.get(keyOf(event)) ?? {};
    if (traceparent === undefined) return {};
    const { trace_id, span_id } = traceIdsOf({ traceparent });
    return { trace_id, span_id };
  };
  const forget = (key: string): void => {
    asked.delete(key);
    failures.delete(key);
  };
  return (event, tracing) => {
    const key = keyOf(event);
    switch (event.type) {
      case "operation_start":
      case "run_start":
        if (event.traceparent !== undefined) remember(asked, key, event);
        return;
      case "error":
        if (!event.will_retry) remember(failures, key, event.error.type);
        return;
      case "operation": {
        const { agent, instance_id, session, operation_id, run_id, task_id, usage } = event;
        write("operation", {
          agent,
          instance_id,
          session,
          operation_id,
          kind: event.operation_kind,
          ...(run_id === undefined ? {} : { run_id }),
          ...(task_id === undefined ? {} : { task_id }),
          ...endingOf(event, failures.get(key)),
          ...(usage === undefined ? {} : { tokens: usage.total_tokens, cost: usage.cost.total }),
          ...tracesOf(event, tracing),
        });
        forget(key);
        return;
      }
      case "run_end":
        write("run", {
          run_id: event.run_id,
          workflow: event.workflow,
          ...endingOf(event, event.error?.type),
          ...tracesOf(event, tracing),
        });
        forget(key);
        return;
      default:
        return;
    }
  };
}

function endingOf(
  event: { readonly is_error: boolean; readonly is_aborted?: true | undefined; readonly duration_ms: number },
  error: string | undefined,
): object {
  const outcome = event.is_aborted === true ? "aborted" : event.is_error ? "failed" : "completed";
  return {
    outcome,
    ...(outcome === "failed" && error !== undefined ? { error } : {}),
    duration_ms: event.duration_ms,
  };
}

function remember<Value>(map: Map<string, Value>, key: string, value: Value): void {
  map.set(key, value);
  if (map.size <= maxOpen) return;
  for (const oldest of map.keys()) {
    map.delete(oldest);
    return;
  }
}

function keyOf({ agent, instance_id, session, operation_id }: KitEvent): string {
  return JSON.stringify([agent, instance_id, session, operation_id]);
}
