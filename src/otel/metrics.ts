import type { Attributes, Histogram, Meter, ObservableCounter } from "@opentelemetry/api";
import type { KitEvent } from "../protocol/event.ts";
import type { Usage } from "../protocol/message.ts";
import { inferenceBuckets, metricNames, names, operations, workBuckets } from "./conventions.ts";

type EventOf<Type extends KitEvent["type"]> = Extract<KitEvent, { readonly type: Type }>;

/** The instruments of what agents, models and tools do. */
export class WorkMetrics {
  readonly #inference: Histogram;
  readonly #firstChunk: Histogram;
  readonly #tokens: TokenCounts;
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
    this.#inference = seconds(metricNames.inference, "Time of a call of a model.", inferenceBuckets);
    this.#firstChunk = seconds(
      metricNames.firstChunk,
      "Until the first piece of an answer.",
      inferenceBuckets,
    );
    this.#tokens = tokenCountsOf(meter);
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
    this.#tokens.add(of, usage);
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

const tokenFields = ["input", "output", "cache_read", "cache_write"] as const;

/**
 * The tokens of each model so far, which the SDK reads when it exports metrics: a counter that every turn updates would
 * hash its attributes each time.
 */
class TokenCounts {
  readonly #counts = new Map<
    string,
    { readonly of: Attributes } & Record<(typeof tokenFields)[number], number>
  >();

  constructor(meter: Meter) {
    const counter = (name: string, description: string): ObservableCounter =>
      meter.createObservableCounter(name, { unit: "{token}", description });
    const counters = {
      input: counter(metricNames.input, "Tokens that models were given."),
      output: counter(metricNames.output, "Tokens that models have written."),
      cache_read: counter(metricNames.cacheRead, "Tokens read from a provider's cache."),
      cache_write: counter(metricNames.cacheWrite, "Tokens written to a provider's cache."),
    };
    meter.addBatchObservableCallback((result) => {
      for (const count of this.#counts.values())
        for (const field of tokenFields)
          if (count[field] > 0) result.observe(counters[field], count[field], count.of);
    }, Object.values(counters));
  }

  add(of: Attributes, usage: Usage): void {
    const key = `${of[names.provider]} ${of[names.requestModel]}`;
    let count = this.#counts.get(key);
    if (count === undefined) {
      count = { of, input: 0, output: 0, cache_read: 0, cache_write: 0 };
      this.#counts.set(key, count);
    }
    for (const field of tokenFields) count[field] += usage[field];
  }
}

/** All observers of a meter share one count: two callbacks would report two totals for the same model. */
const tokenCounts = new WeakMap<Meter, TokenCounts>();

function tokenCountsOf(meter: Meter): TokenCounts {
  let counts = tokenCounts.get(meter);
  if (counts === undefined) {
    counts = new TokenCounts(meter);
    tokenCounts.set(meter, counts);
  }
  return counts;
}

/** The attributes of a turn for its metrics. */
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
