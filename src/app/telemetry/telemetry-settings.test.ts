import { expect, test } from "vitest";
import { knownSecrets } from "../runtime/known-secrets.ts";
import { hasTelemetrySettings, readTelemetrySettings } from "./telemetry-settings.ts";

test("without variables, all goes to the receiver of this machine", () => {
  const settings = readTelemetrySettings({});
  expect(settings.traces).toMatchObject({
    url: "http://localhost:4318/v1/traces",
    headers: {},
    timeoutMs: 10_000,
  });
  expect(settings.metrics?.url).toBe("http://localhost:4318/v1/metrics");
  expect(settings).toMatchObject({
    resource: { "service.name": "kit" },
    capturesContent: false,
    remarks: [],
  });
});

test("OpenTelemetry's variables say where, whose, how many and which", () => {
  const settings = readTelemetrySettings({
    OTEL_EXPORTER_OTLP_ENDPOINT: "https://receiver.example/api/",
    OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: "https://traces.example/t",
    OTEL_EXPORTER_OTLP_HEADERS: "Authorization=Basic%20abc, x-team=one",
    OTEL_EXPORTER_OTLP_METRICS_HEADERS: "x-team=two",
    OTEL_EXPORTER_OTLP_TIMEOUT: "500",
    OTEL_EXPORTER_OTLP_COMPRESSION: "gzip",
    OTEL_RESOURCE_ATTRIBUTES: "service.name=other,deployment.environment.name=test",
    OTEL_SERVICE_NAME: "shop",
    OTEL_TRACES_SAMPLER: "parentbased_traceidratio",
    OTEL_TRACES_SAMPLER_ARG: "0.25",
    OTEL_BSP_MAX_QUEUE_SIZE: "50",
    OTEL_METRIC_EXPORT_INTERVAL: "1000",
  });
  expect(settings).toEqual({
    traces: {
      url: "https://traces.example/t",
      headers: { Authorization: "Basic abc", "x-team": "one" },
      timeoutMs: 500,
      gzip: true,
    },
    metrics: {
      url: "https://receiver.example/api/v1/metrics",
      headers: { Authorization: "Basic abc", "x-team": "two" },
      timeoutMs: 500,
      gzip: true,
    },
    resource: { "service.name": "shop", "deployment.environment.name": "test" },
    sampler: { name: "parentbased_traceidratio", ratio: 0.25 },
    queue: { spans: 50, batch: 50, delayMs: 1_000 },
    metricIntervalMs: 1_000,
    capturesContent: false,
    remarks: [],
  });
});

test("telemetry that is not sent has no target", () => {
  const settings = readTelemetrySettings({ OTEL_TRACES_EXPORTER: "none", OTEL_METRICS_EXPORTER: "none" });
  expect([settings.traces, settings.metrics]).toEqual([undefined, undefined]);
});

test.each([
  [{ OTEL_EXPORTER_OTLP_PROTOCOL: "grpc" }, /The protocol grpc is asked for/],
  [{ OTEL_TRACES_EXPORTER: "zipkin" }, /OTEL_TRACES_EXPORTER is zipkin/],
  [{ OTEL_TRACES_SAMPLER: "dice" }, /OTEL_TRACES_SAMPLER has no sampler dice/],
  [{ OTEL_BSP_MAX_QUEUE_SIZE: "many" }, /OTEL_BSP_MAX_QUEUE_SIZE is not a whole number/],
])("what is not understood is told: %o", (environment, remark) => {
  expect(readTelemetrySettings(environment).remarks.join(" ")).toMatch(remark);
});

test.each([["ftp://receiver"], ["receiver:4318"], ["not an address"]])("%s is not an address", (endpoint) => {
  expect(() => readTelemetrySettings({ OTEL_EXPORTER_OTLP_ENDPOINT: endpoint })).toThrow(
    /OTEL_EXPORTER_OTLP_ENDPOINT/,
  );
});

test("an endpoint asks for telemetry, unless the SDK is switched off", () => {
  const endpoint = { OTEL_EXPORTER_OTLP_ENDPOINT: "http://localhost:4318" };
  expect(
    [{}, endpoint, { ...endpoint, OTEL_SDK_DISABLED: "true" }, { OTEL_EXPORTER_OTLP_ENDPOINT: " " }].map(
      hasTelemetrySettings,
    ),
  ).toEqual([false, true, false, false]);
});

test("keys in headers of receivers are known secrets", () => {
  const secrets = knownSecrets({ OTEL_EXPORTER_OTLP_HEADERS: "Authorization=Basic%20c2VjcmV0LWtleQ==" });
  expect(secrets).toContain("c2VjcmV0LWtleQ==");
});
