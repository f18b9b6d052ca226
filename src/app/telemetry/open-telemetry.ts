import { endsWithin } from "../../base/abort.ts";
import { KitError } from "../../base/kit-error.ts";
import { createOpenTelemetryObserver, type OpenTelemetryObserver } from "../../otel/create-observer.ts";
import { observeService, type ServiceLoad } from "../../otel/service-metrics.ts";
import { createIdGenerator } from "../../otel/trace-ids.ts";
import type { TelemetryConfig } from "../config/config-schema.ts";
import { SpanQueue } from "./span-queue.ts";
import {
  type OtlpTarget,
  readTelemetrySettings,
  type SamplerName,
  type TelemetrySettings,
} from "./telemetry-settings.ts";

export interface TelemetryOptions {
  readonly environment: Readonly<Record<string, string | undefined>>;
  readonly config?: TelemetryConfig | undefined;
  /** Receives sentences about lost data and about invalid settings. */
  readonly onProblem: (text: string) => void;
}

/** Sends the spans and metrics of a process. */
export interface Telemetry {
  readonly observer: OpenTelemetryObserver;
  /** The receivers, as a text for the person who has started the process. */
  readonly target: string;
  /** Measures waiting and running work. */
  measure(load: () => Promise<ServiceLoad>): void;
  /** Sends the waiting spans. */
  flushSpans(): Promise<void>;
  /** Sends the current metrics, for at most `timeoutMs`; call it before the measured parts are closed. */
  flushMetrics(timeoutMs: number): Promise<void>;
  /** Sends the rest, for at most `timeoutMs`. */
  close(timeoutMs: number): Promise<void>;
}

const packages = [
  "@opentelemetry/api",
  "@opentelemetry/context-async-hooks",
  "@opentelemetry/exporter-metrics-otlp-http",
  "@opentelemetry/exporter-trace-otlp-http",
  "@opentelemetry/resources",
  "@opentelemetry/sdk-metrics",
  "@opentelemetry/sdk-trace",
];

/**
 * Sets OpenTelemetry up from its variables (`OTEL_*`), with its SDK, which only this file loads. A global provider of the
 * program stays the global one. Throws `unavailable` if a package is missing, with the command that installs it.
 */
export async function openTelemetry({
  environment,
  config = {},
  onProblem,
}: TelemetryOptions): Promise<Telemetry> {
  const settings = readTelemetrySettings(environment);
  const sdk = await loadSdk();
  const { context, metrics, trace } = sdk.api;
  for (const remark of settings.remarks) onProblem(remark);
  const resource = sdk.resources.resourceFromAttributes(settings.resource);
  const provider = new sdk.trace.TracerProvider({
    resource,
    sampler: samplerOf(sdk.trace, settings.sampler),
    idGenerator: createIdGenerator(),
    spanProcessors:
      settings.traces === undefined ? [] : [queueOf(sdk, settings.traces, { settings, onProblem })],
  });
  const meters = new sdk.metrics.MeterProvider({
    resource,
    readers: settings.metrics === undefined ? [] : [readerOf(sdk, settings.metrics, { settings, onProblem })],
  });
  const manager = new sdk.context.AsyncLocalStorageContextManager().enable();
  const isContext = context.setGlobalContextManager(manager);
  const isTrace = trace.setGlobalTracerProvider(provider);
  const isMeter = metrics.setGlobalMeterProvider(meters);
  const meter = meters.getMeter("kit");
  const observer = createOpenTelemetryObserver({
    tracer: provider.getTracer("kit"),
    meter,
    captureContent: config.capture_content ?? settings.capturesContent,
    openInference: config.open_inference ?? false,
  });
  const ending: (() => void)[] = [];
  return {
    observer,
    target: settings.traces?.url ?? settings.metrics?.url ?? "nowhere",
    measure: (load) => void ending.push(observeService(load, { meter })),
    flushSpans: () => provider.forceFlush(),
    flushMetrics: async (timeoutMillis) => {
      await meters.forceFlush({ timeoutMillis }).catch(() => undefined);
    },
    async close(timeoutMs) {
      observer.close();
      // The observer has reported a receiver that does not answer.
      const done = Promise.allSettled([meters.shutdown({ timeoutMillis: timeoutMs }), provider.shutdown()]);
      if (!(await endsWithin(timeoutMs, done)))
        onProblem(
          `OpenTelemetry: the receiver took longer than ${timeoutMs / 1_000} s, and was not waited for.`,
        );
      for (const end of ending) end();
      if (isTrace) trace.disable();
      if (isMeter) metrics.disable();
      if (isContext) context.disable();
    },
  };
}

type Sdk = Awaited<ReturnType<typeof loadSdk>>;

async function loadSdk() {
  try {
    const [api, context, metricExporter, traceExporter, resources, metrics, trace] = await Promise.all([
      import("@opentelemetry/api"),
      import("@opentelemetry/context-async-hooks"),
      import("@opentelemetry/exporter-metrics-otlp-http"),
      import("@opentelemetry/exporter-trace-otlp-http"),
      import("@opentelemetry/resources"),
      import("@opentelemetry/sdk-metrics"),
      import("@opentelemetry/sdk-trace"),
    ]);
    return { api, context, metricExporter, traceExporter, resources, metrics, trace };
  } catch (error) {
    throw missingPackage(error);
  }
}

function missingPackage(cause: unknown): KitError {
  return new KitError({
    code: "unavailable",
    message: "A package that telemetry needs is not installed.",
    hint: `Run: npm install ${packages.join(" ")}`,
    cause,
  });
}

interface Sending {
  readonly settings: TelemetrySettings;
  readonly onProblem: (text: string) => void;
}

function queueOf({ traceExporter }: Sdk, target: OtlpTarget, { settings, onProblem }: Sending): SpanQueue {
  return new SpanQueue({
    exporter: new traceExporter.OTLPTraceExporter(toExporter(target)),
    ...settings.queue,
    onLost: (spans, why) =>
      onProblem(
        `OpenTelemetry: ${spans} spans were lost: ${why}.${why.startsWith("more than") ? " Raise OTEL_BSP_MAX_QUEUE_SIZE, or sample with OTEL_TRACES_SAMPLER." : ""}`,
      ),
  });
}

function readerOf({ metrics, metricExporter }: Sdk, target: OtlpTarget, { settings, onProblem }: Sending) {
  const exporter = new metricExporter.OTLPMetricExporter(toExporter(target));
  const send = exporter.export.bind(exporter);
  let failed = false;
  exporter.export = (data, done) =>
    send(data, (result) => {
      // Report the failure once until a send succeeds: the next metrics include these.
      if (result.code !== 0 && !failed)
        onProblem("OpenTelemetry: metrics could not be sent; the next ones have what is missing.");
      failed = result.code !== 0;
      done(result);
    });
  const exportIntervalMillis = settings.metricIntervalMs;
  const exportTimeoutMillis = Math.min(target.timeoutMs, exportIntervalMillis);
  return new metrics.PeriodicExportingMetricReader({ exporter, exportIntervalMillis, exportTimeoutMillis });
}

function toExporter({ url, headers, timeoutMs, gzip }: OtlpTarget) {
  return {
    url,
    headers: { ...headers },
    timeoutMillis: timeoutMs,
    ...(gzip ? { compression: "gzip" as never } : {}),
  };
}

function samplerOf(
  { AlwaysOffSampler, AlwaysOnSampler, ParentBasedSampler, TraceIdRatioBasedSampler }: Sdk["trace"],
  { name, ratio }: { readonly name: SamplerName; readonly ratio: number },
) {
  const root = name.endsWith("always_off")
    ? new AlwaysOffSampler()
    : name.endsWith("traceidratio")
      ? new TraceIdRatioBasedSampler(ratio)
      : new AlwaysOnSampler();
  return name.startsWith("parentbased") ? new ParentBasedSampler({ root }) : root;
}
