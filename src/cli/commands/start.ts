import type { KitEvent } from "../../protocol/event.ts";
import { type TraceContext, type Tracing, traceIdsOf } from "../../protocol/tracing.ts";
import type { RequestEntry } from "../../server/answer-request.ts";
import { type Command, defineCommand, option } from "../command.ts";
import type { Output } from "../print/output.ts";
import { usageError } from "../report-error.ts";
import { type ServeMode, serve, serveOptions } from "../serve.ts";
import { safeLine, toSafeJsonLine } from "../text/safe-text.ts";

const logFormats = ["text", "json"] as const;
type LogFormat = (typeof logFormats)[number];

export const start: Command = defineCommand({
  drains: true,
  options: {
    ...serveOptions,
    log: option("--log <format>", "Log every request to stderr, as text or json", parseLogFormat),
  },
  examples: [
    "kit start",
    "kit start --cwd examples/shop --port 3000",
    "KIT_API_KEYS=secret kit start --host 0.0.0.0 --log json",
  ],
  details:
    "Updates its index when files change. With KIT_API_KEYS, every request needs a key: Authorization: Bearer <key>. The lines of --log contain no query and no body; with json, errors, warnings and the end of every operation and run are lines of JSON too, with the ids of their traces. --otel sends traces and metrics; so does OTEL_EXPORTER_OTLP_ENDPOINT alone. After Ctrl-C and SIGTERM, running replies can finish.",
  run: ({ options: { log, ...options } }, context) =>
    serve(options, context, { dev: false, ...(log === "json" ? jsonLog : textLog)(context.output, log) }),
});

function parseLogFormat(text: string): LogFormat {
  const format = logFormats.find((name) => name === text);
  if (format !== undefined) return format;
  throw usageError(`"${text}" is not a format of a log.`, `The formats are ${logFormats.join(" and ")}.`);
}

type Log = Pick<
  ServeMode,
  "onError" | "onEvent" | "onRefused" | "onRemoved" | "onRequest" | "onResolved" | "onTelemetry"
>;

/** The log of a server as lines of text. */
export function textLog(output: Output, format: LogFormat | undefined): Log {
  const onRequest = ({ method, path, status, duration_ms, principal = "-" }: RequestEntry): void => {
    const took = `${duration_ms.toFixed(1)} ms`;
    output.note(
      `${new Date().toISOString()}  ${status}  ${took.padStart(9)}  ${safeLine(principal)}  ${method} ${safeLine(path)}`,
    );
  };
  return {
    onError: (text) => output.note(`${output.noteStyle("red", "error:")} ${text}`),
    onRefused: (advice) => output.note(`${output.noteStyle("yellow", "warning:")} ${safeLine(advice)}`),
    onRemoved: (text) => output.note(`${new Date().toISOString()}  ${safeLine(text)}`),
    onResolved: (text) => output.note(`${output.noteStyle("green", "resolved:")} ${safeLine(text)}`),
    onTelemetry: (text) => output.note(`${output.noteStyle("yellow", "warning:")} ${safeLine(text)}`),
    ...(format === undefined ? {} : { onRequest }),
  };
}

function jsonLog(output: Output): Log {
  const write = (type: string, fields: object): void =>
    output.note(toSafeJsonLine({ time: new Date().toISOString(), type, ...fields }));
  return {
    onError: (message) => write("error", { message }),
    onRefused: (message) => write("warning", { message }),
    onRemoved: (message) => write("retention", { message }),
    onResolved: (message) => write("resolved", { message }),
    onTelemetry: (message) => write("telemetry", { message }),
    onEvent: createWorkLog(write),
    onRequest: ({ duration_ms, ...entry }) =>
      write("request", { ...entry, duration_ms: Math.round(duration_ms * 1_000) / 1_000 }),
  };
}

/** How many operations to remember the trace of until they end; beyond that, the oldest are logged without a trace. */
const maxOpen = 10_000;

/** Writes a line for the end of every operation and run: how it went, how long it took, its trace. No content. */
function createWorkLog(
  write: (type: string, fields: object) => void,
): (event: KitEvent, tracing: Tracing | undefined) => void {
  /** Where this server records no traces, the caller's trace. */
  const traces = new Map<string, { readonly [Name in keyof TraceContext]?: string | undefined }>();
  const failures = new Map<string, string>();
  const tracesOf = (event: KitEvent, tracing: Tracing | undefined): object => {
    const { traceparent } = tracing?.of(event) ?? traces.get(keyOf(event)) ?? {};
    if (traceparent === undefined) return {};
    const { trace_id, span_id } = traceIdsOf({ traceparent });
    return { trace_id, span_id };
  };
  const forget = (key: string): void => {
    traces.delete(key);
    failures.delete(key);
  };
  return (event, tracing) => {
    const key = keyOf(event);
    switch (event.type) {
      case "operation_start":
      case "run_start":
        if (event.traceparent !== undefined) remember(traces, key, event);
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
          run_id,
          task_id,
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
