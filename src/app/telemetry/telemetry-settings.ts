import { KitError } from "../../base/kit-error.ts";
import { percentDecoded } from "../../base/percent.ts";

/** Settings from OpenTelemetry's environment variables. */
export interface TelemetrySettings {
  /** Absent if traces are not sent. */
  readonly traces?: OtlpTarget | undefined;
  readonly metrics?: OtlpTarget | undefined;
  readonly resource: Readonly<Record<string, string>>;
  readonly sampler: { readonly name: SamplerName; readonly ratio: number };
  readonly queue: { readonly spans: number; readonly batch: number; readonly delayMs: number };
  readonly metricIntervalMs: number;
  readonly capturesContent: boolean;
  /** Sentences about invalid settings. */
  readonly remarks: readonly string[];
}

export interface OtlpTarget {
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly timeoutMs: number;
  readonly gzip: boolean;
}

type Environment = Readonly<Record<string, string | undefined>>;

const samplers = [
  "always_on",
  "always_off",
  "traceidratio",
  "parentbased_always_on",
  "parentbased_always_off",
  "parentbased_traceidratio",
] as const;
export type SamplerName = (typeof samplers)[number];

/** Whether the environment turns telemetry on. */
export function hasTelemetrySettings(environment: Environment): boolean {
  if (environment.OTEL_SDK_DISABLED?.trim().toLowerCase() === "true") return false;
  return ["", "_TRACES", "_METRICS"].some(
    (signal) => textOf(environment, `OTEL_EXPORTER_OTLP${signal}_ENDPOINT`) !== undefined,
  );
}

/**
 * Reads the variables of OpenTelemetry (`OTEL_*`). Throws `invalid_request` for an invalid address; for other
 * invalid values, it uses the default and adds a sentence to `remarks`.
 */
export function readTelemetrySettings(environment: Environment): TelemetrySettings {
  const remarks: string[] = [];
  const count = (name: string, least: number, otherwise: number): number => {
    const text = textOf(environment, name);
    if (text === undefined) return otherwise;
    if (/^\d{1,12}$/.test(text) && Number(text) >= least) return Number(text);
    remarks.push(`${name} is not a whole number from ${least} on, so ${otherwise} is taken.`);
    return otherwise;
  };
  const targetOf = (signal: "TRACES" | "METRICS"): OtlpTarget | undefined => {
    const exporter = textOf(environment, `OTEL_${signal}_EXPORTER`) ?? "otlp";
    if (exporter === "none") return undefined;
    if (exporter !== "otlp") remarks.push(`OTEL_${signal}_EXPORTER is ${exporter}; kit sends OTLP.`);
    const read = (name: string): string | undefined =>
      textOf(environment, `OTEL_EXPORTER_OTLP_${signal}_${name}`) ??
      textOf(environment, `OTEL_EXPORTER_OTLP_${name}`);
    const protocol = read("PROTOCOL");
    if (protocol !== undefined && protocol !== "http/json")
      remarks.push(
        `The protocol ${protocol} is asked for; kit sends http/json, which receivers take at the port for HTTP (4318).`,
      );
    return {
      url: urlOf(environment, signal),
      headers: { ...headersOf(environment, ""), ...headersOf(environment, `${signal}_`) },
      timeoutMs: Number(read("TIMEOUT") ?? 10_000) || 10_000,
      gzip: read("COMPRESSION") === "gzip",
    };
  };
  const traces = targetOf("TRACES");
  const metrics = targetOf("METRICS");
  const spans = count("OTEL_BSP_MAX_QUEUE_SIZE", 1, 16_384);
  return {
    traces,
    metrics,
    resource: resourceOf(environment),
    sampler: samplerOf(environment, remarks),
    queue: {
      spans,
      batch: Math.min(spans, count("OTEL_BSP_MAX_EXPORT_BATCH_SIZE", 1, 1_024)),
      delayMs: count("OTEL_BSP_SCHEDULE_DELAY", 0, 1_000),
    },
    metricIntervalMs: count("OTEL_METRIC_EXPORT_INTERVAL", 1, 60_000),
    capturesContent: /^(true|span_only|span_and_event)$/i.test(
      textOf(environment, "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT") ?? "",
    ),
    remarks,
  };
}

/** The values of receivers' headers, which are usually keys. */
export function secretsOfTelemetry(environment: Environment): readonly string[] {
  return ["", "TRACES_", "METRICS_"].flatMap((signal) =>
    Object.values(headersOf(environment, signal)).flatMap((value) => [
      value,
      value.slice(value.lastIndexOf(" ") + 1),
    ]),
  );
}

function urlOf(environment: Environment, signal: "TRACES" | "METRICS"): string {
  const endpoint = textOf(environment, `OTEL_EXPORTER_OTLP_${signal}_ENDPOINT`);
  const base = textOf(environment, "OTEL_EXPORTER_OTLP_ENDPOINT") ?? "http://localhost:4318";
  const text = endpoint ?? `${base.replace(/\/+$/, "")}/v1/${signal.toLowerCase()}`;
  const url = URL.parse(text);
  if (url !== null && /^https?:$/.test(url.protocol)) return url.href;
  throw new KitError({
    code: "invalid_request",
    message: `OTEL_EXPORTER_OTLP${endpoint === undefined ? "" : `_${signal}`}_ENDPOINT is not the address of a receiver.`,
    hint: "Such as http://localhost:4318, where a collector receives OTLP over HTTP.",
  });
}

/** Parses `name=value,name=value`, percent-decoded. */
function headersOf(environment: Environment, signal: string): Readonly<Record<string, string>> {
  return listOf(textOf(environment, `OTEL_EXPORTER_OTLP_${signal}HEADERS`));
}

function resourceOf(environment: Environment): Readonly<Record<string, string>> {
  const attributes = listOf(textOf(environment, "OTEL_RESOURCE_ATTRIBUTES"));
  const name = textOf(environment, "OTEL_SERVICE_NAME") ?? attributes["service.name"] ?? "kit";
  return { ...attributes, "service.name": name };
}

function listOf(text: string | undefined): Readonly<Record<string, string>> {
  const pairs = (text ?? "").split(",").flatMap((pair) => {
    const at = pair.indexOf("=");
    return at < 1 ? [] : [[pair.slice(0, at).trim(), percentDecoded(pair.slice(at + 1).trim())] as const];
  });
  return Object.fromEntries(pairs);
}

function samplerOf(environment: Environment, remarks: string[]): TelemetrySettings["sampler"] {
  const text = textOf(environment, "OTEL_TRACES_SAMPLER") ?? "parentbased_always_on";
  const name = samplers.find((each) => each === text);
  if (name === undefined)
    remarks.push(`OTEL_TRACES_SAMPLER has no sampler ${text}, so parentbased_always_on is taken.`);
  const ratio = Number(textOf(environment, "OTEL_TRACES_SAMPLER_ARG") ?? 1);
  return { name: name ?? "parentbased_always_on", ratio: ratio >= 0 && ratio <= 1 ? ratio : 1 };
}

function textOf(environment: Environment, name: string): string | undefined {
  const text = environment[name]?.trim();
  return text === "" ? undefined : text;
}
