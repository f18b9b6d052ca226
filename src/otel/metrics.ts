import type { Attributes, Counter, Histogram, Meter } from "@opentelemetry/api";
import type { KitEvent } from "../protocol/event.ts";
import { inferenceBuckets, metricNames, names, operations, workBuckets } from "./names.ts";

type EventOf<Type extends KitEvent["type"]> = Extract<KitEvent, { readonly type: Type }>;

/** The instruments of what agents, models and tools do. */
export class WorkMetrics {
  readonly #inference: Histogram;
  readonly #firstChunk: Histogram;
  readonly #tokens: readonly (readonly ["input" | "output" | "cache_read" | "cache_write", Counter])[];
  readonly #workflow: Histogram;
  readonly #agent: Histogram;
  readonly #tool: Histogram;

  constructor(meter: Meter) {
    const seconds = (name: string, description: string, boundaries: readonly number[]): Histogram =>
      meter.createHistogram(name, {
        unit: "s",
        description,
        advice: { explicitBucketBoundaries: [...boundaries] },
      });
    const tokens = (name: string, description: string): Counter =>
      meter.createCounter(name, { unit: "{token}", description });
    this.#inference = seconds(metricNames.inference, "Time of a call of a model.", inferenceBuckets);
    this.#firstChunk = seconds(
      metricNames.firstChunk,
      "Until the first piece of an answer.",
      inferenceBuckets,
    );
    this.#tokens = [
      ["input", tokens(metricNames.input, "Tokens that models were given.")],
      ["output", tokens(metricNames.output, "Tokens that models have written.")],
      ["cache_read", tokens(metricNames.cacheRead, "Tokens read from a provider's cache.")],
      ["cache_write", tokens(metricNames.cacheWrite, "Tokens written to a provider's cache.")],
    ];
    this.#workflow = seconds(metricNames.workflow, "Time of a run of a workflow.", workBuckets);
    this.#agent = seconds(metricNames.agent, "Time of an operation of an agent.", workBuckets);
    this.#tool = seconds(metricNames.tool, "Time of a call of a tool.", workBuckets);
  }

  /** One attempt at a turn; `of` has its provider and model. */
  inference(of: Attributes, seconds: number, error?: string): void {
    this.#inference.record(Math.max(0, seconds), withError(of, error));
  }

  answer(of: Attributes, { usage, first_chunk_ms }: EventOf<"turn">): void {
    if (first_chunk_ms !== undefined) this.#firstChunk.record(first_chunk_ms / 1_000, of);
    for (const [field, counter] of this.#tokens) if (usage[field] > 0) counter.add(usage[field], of);
  }

  workflow({ workflow, duration_ms }: EventOf<"run_end">, error?: string): void {
    const of = { [names.operation]: operations.workflow, [names.workflow]: workflow };
    this.#workflow.record(duration_ms / 1_000, withError(of, error));
  }

  operation({ agent = "", operation_kind, duration_ms }: EventOf<"operation">, error?: string): void {
    const of = {
      [names.operation]: operations.agent,
      [names.agent]: agent,
      "kit.operation.kind": operation_kind,
    };
    this.#agent.record(duration_ms / 1_000, withError(of, error));
  }

  tool({ tool, duration_ms }: EventOf<"tool_end">, error?: string): void {
    const of = { [names.operation]: operations.tool, [names.tool]: tool };
    this.#tool.record(duration_ms / 1_000, withError(of, error));
  }
}

/** What of a turn's attributes its metrics have. */
export function inferenceAttributes(attributes: Attributes): Attributes {
  const { operation, provider, requestModel } = names;
  return {
    [operation]: attributes[operation],
    [provider]: attributes[provider],
    [requestModel]: attributes[requestModel],
  };
}

function withError(of: Attributes, error: string | undefined): Attributes {
  return error === undefined ? of : { ...of, [names.error]: error };
}
