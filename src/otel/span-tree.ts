import {
  type Attributes,
  type Context,
  type Span,
  type SpanKind,
  SpanStatusCode,
  type Tracer,
  trace,
} from "@opentelemetry/api";
import type { KitEvent } from "../protocol/event.ts";
import type { TurnTool } from "../protocol/tracing.ts";
import { names } from "./conventions.ts";
import { withSeed } from "./trace-ids.ts";

/** An open span, and the keys of the spans below it. */
export interface OpenSpan {
  readonly span: Span;
  readonly context: Context;
  readonly startedMs: number;
  /** Spans that end with this one at the latest. */
  readonly below: Set<string>;
  /** Why its work failed, if that is known before the end. */
  failure?: string | undefined;
  /** On the span of an operation: the tools of its newest turn. */
  tools?: readonly TurnTool[];
  /** Data that the end of the span needs. */
  readonly attributes: Attributes;
}

export interface SpanStart {
  readonly key: string;
  readonly name: string;
  readonly kind: SpanKind;
  readonly attributes: Attributes;
  readonly parent: Context;
  /** The number of the attempt, from 1: attempts may start in the same millisecond. */
  readonly attempt?: number | undefined;
  /** Set if a key starts only once: repeated start events then get the same span id. */
  readonly isOnce?: true;
  /** The key of the span with which this one ends at the latest. */
  readonly within?: string | undefined;
}

/** The open spans, by the keys of their work. */
export class SpanTree {
  readonly #open = new Map<string, OpenSpan>();
  readonly #owners = new Map<string, string>();
  readonly #tracer: Tracer;

  constructor(tracer: Tracer) {
    this.#tracer = tracer;
  }

  get size(): number {
    return this.#open.size;
  }

  get(key: string): OpenSpan | undefined {
    return this.#open.get(key);
  }

  /** Returns the context of the first key that has an open span. */
  contextOf(...keys: (string | undefined)[]): Context | undefined {
    for (const key of keys) {
      const open = key === undefined ? undefined : this.#open.get(key);
      if (open !== undefined) return open.context;
    }
    return undefined;
  }

  start(event: KitEvent, start: SpanStart): OpenSpan {
    const { key, name, kind, attributes, parent, within, attempt = 1, isOnce } = start;
    const startedMs = Date.parse(event.timestamp);
    const options = { kind, startTime: startedMs, attributes };
    // The same event has another index in the log of its run.
    const seed = isOnce === true ? key : `${key} ${attempt} ${event.timestamp}`;
    const span = withSeed(seed, () => this.#tracer.startSpan(name, options, parent));
    const open: OpenSpan = {
      span,
      context: trace.setSpan(parent, span),
      startedMs,
      below: new Set(),
      attributes,
    };
    this.#open.set(key, open);
    const owner = within === undefined ? undefined : this.#open.get(within);
    if (within !== undefined && owner !== undefined) {
      owner.below.add(key);
      this.#owners.set(key, within);
    }
    return open;
  }

  /** Ends a span and the open spans below it. Returns the span; `undefined` if it was not open. */
  end(
    key: string,
    event: KitEvent,
    end: { readonly attributes?: Attributes | undefined; readonly error?: string | undefined } = {},
  ): OpenSpan | undefined {
    const open = this.#open.get(key);
    if (open === undefined) return undefined;
    this.forget(key);
    for (const child of open.below) this.end(child, event, { error: end.error ?? "interrupted" });
    const { span } = open;
    const { attributes, error = open.failure } = end;
    if (attributes !== undefined) span.setAttributes(attributes);
    if (error !== undefined) {
      span.setAttribute(names.error, error);
      span.setStatus({ code: SpanStatusCode.ERROR });
    }
    // The clock may have been set back since the start.
    span.end(Math.max(open.startedMs, Date.parse(event.timestamp)));
    return open;
  }

  /** Forgets a span without ending it: another process continues the work and ends it. */
  forget(key: string): void {
    this.#open.delete(key);
    const owner = this.#owners.get(key);
    if (owner === undefined) return;
    this.#owners.delete(key);
    this.#open.get(owner)?.below.delete(key);
  }

  entries(): readonly (readonly [string, OpenSpan])[] {
    return [...this.#open];
  }
}
