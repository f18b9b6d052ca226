import type { RequestEntry } from "../../server/answer-request.ts";
import { type Command, defineCommand, option } from "../command.ts";
import type { Output } from "../output.ts";
import { usageError } from "../report-error.ts";
import { type ServeMode, serve, serveOptions } from "../serve.ts";
import { safeLine, toSafeJsonLine } from "../text/safe-text.ts";
import { createWorkLog } from "../work-log.ts";

const logFormats = ["text", "json"] as const;
type LogFormat = (typeof logFormats)[number];

export const start: Command = defineCommand({
  drains: true,
  options: {
    ...serveOptions,
    log: option("--log <format>", "A line on stderr for every request: text or json", parseLogFormat),
  },
  examples: [
    "kit start",
    "kit start --cwd examples/shop --port 3000",
    "KIT_API_KEYS=secret kit start --host 0.0.0.0 --log json",
  ],
  details:
    "Follows changes of the files. KIT_API_KEYS asks every request for a key: Authorization: Bearer <key>. The lines of --log hold no query and no body; with json, errors, warnings and the end of every operation and run are lines of JSON, too, with the ids of their traces. --otel sends traces and metrics; OTEL_EXPORTER_OTLP_ENDPOINT alone does, too. Ctrl-C and SIGTERM let replies under way finish.",
  run: ({ options: { log, ...options } }, context) =>
    serve(options, context, { dev: false, ...(log === "json" ? jsonLog : textLog)(context.output, log) }),
});

function parseLogFormat(text: string): LogFormat {
  const format = logFormats.find((name) => name === text);
  if (format !== undefined) return format;
  throw usageError(`"${text}" is no format of a log.`, `The formats are ${logFormats.join(" and ")}.`);
}

type Log = Pick<ServeMode, "onError" | "onEvent" | "onRefused" | "onRemoved" | "onRequest" | "onTelemetry">;

function textLog(output: Output, format: LogFormat | undefined): Log {
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
    onTelemetry: (message) => write("telemetry", { message }),
    onEvent: createWorkLog(write),
    onRequest: ({ duration_ms, ...entry }) =>
      write("request", { ...entry, duration_ms: Math.round(duration_ms * 1_000) / 1_000 }),
  };
}
