import {
  AggregationTemporality,
  InMemoryMetricExporter,
  MeterProvider,
  PeriodicExportingMetricReader,
} from "@opentelemetry/sdk-metrics";
import { expect, onTestFinished, test } from "vitest";
import { createScriptedModel, type Script } from "../testing/scripted-model.ts";
import { createTestAgent } from "../testing/test-runtime.ts";
import { createOpenTelemetryObserver } from "./create-observer.ts";
import { observeService, type ServiceLoad } from "./service-metrics.ts";
import { price, usage } from "./testing/price.ts";

/** A meter of the real SDK, and what it has measured: of a histogram how many values, of the others their sum or last value. */
function recordMetrics() {
  const exporter = new InMemoryMetricExporter(AggregationTemporality.CUMULATIVE);
  const reader = new PeriodicExportingMetricReader({ exporter, exportIntervalMillis: 3_600_000 });
  const provider = new MeterProvider({ readers: [reader] });
  onTestFinished(() => provider.shutdown());
  return {
    meter: provider.getMeter("kit"),
    async read() {
      exporter.reset();
      await reader.forceFlush();
      const metrics = exporter
        .getMetrics()
        .flatMap(({ scopeMetrics }) => scopeMetrics)
        .flatMap((scope) => scope.metrics);
      return (name: string): readonly (readonly [attributes: object, value: number])[] =>
        metrics
          .filter(({ descriptor }) => descriptor.name === name)
          .flatMap(({ dataPoints }) =>
            dataPoints.map(({ attributes, value }) => [
              attributes,
              typeof value === "number" ? value : (value as { readonly count: number }).count,
            ]),
          );
    },
  };
}

async function prompt(script: Script, observers: number, meter: ReturnType<typeof recordMetrics>["meter"]) {
  const listeners = Array.from({ length: observers }, () => createOpenTelemetryObserver({ meter }));
  const agent = createTestAgent(
    createScriptedModel(script),
    { tools: [price] },
    {
      observers: { all: new Set(listeners), tracing: listeners[0]?.tracing },
      retry: { attempts: 2, baseDelayMs: 1, maxDelayMs: 1 },
    },
  );
  await agent
    .session()
    .prompt("x")
    .catch(() => undefined);
  await agent.close();
}

const model = {
  "gen_ai.operation.name": "chat",
  "gen_ai.provider.name": "scripted",
  "gen_ai.request.model": "test",
};

test("calls of models, tokens, tools and operations are measured by what they are of", async () => {
  const { meter, read } = recordMetrics();
  await prompt(
    [
      { toolCalls: [{ name: "price" }], usage },
      { text: "ok", usage },
    ],
    1,
    meter,
  );
  const measured = await read();
  expect(measured("gen_ai.client.inference.duration")).toEqual([[model, 2]]);
  expect(measured("gen_ai.client.inference.time_to_first_chunk")).toEqual([[model, 2]]);
  expect(measured("gen_ai.client.inference.usage.input_tokens")).toEqual([[model, 240]]);
  expect(measured("gen_ai.client.inference.usage.output_tokens")).toEqual([[model, 20]]);
  expect(measured("gen_ai.client.inference.usage.cache_read.input_tokens")).toEqual([[model, 200]]);
  expect(measured("gen_ai.client.inference.usage.cache_write.input_tokens")).toEqual([[model, 10]]);
  expect(measured("gen_ai.execute_tool.duration")).toEqual([
    [{ "gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "price" }, 1],
  ]);
  expect(measured("gen_ai.invoke_agent.duration")).toEqual([
    [
      {
        "gen_ai.operation.name": "invoke_agent",
        "gen_ai.agent.name": "tester",
        "kit.operation.kind": "prompt",
      },
      1,
    ],
  ]);
});

test("each attempt that fails is a call with its error, beside those that work", async () => {
  const { meter, read } = recordMetrics();
  await prompt([{ error: new Error("busy") }, { text: "ok", usage }], 1, meter);
  await prompt([{ error: new Error("no") }, { error: new Error("no") }], 1, meter);
  const measured = await read();
  expect(measured("gen_ai.client.inference.duration")).toEqual(
    expect.arrayContaining([
      [{ ...model, "error.type": "model_error" }, 3],
      [model, 1],
    ]),
  );
  expect(measured("gen_ai.client.inference.usage.input_tokens")).toEqual([[model, 120]]);
  const agents = measured("gen_ai.invoke_agent.duration").map(([attributes, count]) => [
    "error.type" in attributes ? attributes["error.type"] : undefined,
    count,
  ]);
  expect(agents).toEqual(
    expect.arrayContaining([
      [undefined, 1],
      ["model_error", 1],
    ]),
  );
});

test("observers that share a meter add up", async () => {
  const { meter, read } = recordMetrics();
  await prompt([{ text: "ok", usage }], 2, meter);
  const measured = await read();
  expect(measured("gen_ai.client.inference.usage.input_tokens")).toEqual([[model, 240]]);
});

test("a service's load is measured at every reading; one in which its store is away harms no other", async () => {
  const { meter, read } = recordMetrics();
  const complete: ServiceLoad = {
    queued_dispatches: 3,
    queued_runs: 2,
    running_runs: 1,
    waiting_runs: 4,
    dead_letters: 5,
    waiting_approvals: 6,
  };
  let load: ServiceLoad | undefined = complete;
  const end = observeService(async () => load ?? Promise.reject(new Error("away")), { meter });
  const measured = await read();
  expect(measured("kit.queue.depth")).toEqual([
    [{ "kit.queue": "dispatches" }, 3],
    [{ "kit.queue": "runs" }, 2],
  ]);
  expect(measured("kit.runs")).toEqual([
    [{ "kit.run.status": "running" }, 1],
    [{ "kit.run.status": "waiting" }, 4],
  ]);
  expect(measured("kit.dead_letters")).toEqual([[{}, 5]]);
  expect(measured("kit.approvals.waiting")).toEqual([[{}, 6]]);
  expect(measured("nodejs.eventloop.delay.max")).toHaveLength(1);
  load = undefined;
  expect((await read())("nodejs.eventloop.delay.max")).toHaveLength(1);
  load = { ...complete, dead_letters: 7 };
  expect((await read())("kit.dead_letters")).toEqual([[{}, 7]]);
  end();
});
