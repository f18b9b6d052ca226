import type { KitEvent } from "../protocol/event.ts";
import type { Tracing } from "../protocol/tracing.ts";
import { EventSpans, type OpenTelemetryOptions } from "./event-spans.ts";

/** A listener for events that makes spans and metrics of them: `openService({ onEvent: observer })`. */
export interface OpenTelemetryObserver {
  (event: KitEvent): void;
  /** Asked by kit for what goes out with calls of models, tools and MCP servers. */
  readonly tracing: Tracing;
  /** How many spans have begun and not ended. */
  readonly open: number;
  /** Lets what is open go: its work goes on in another process, which ends it. */
  close(): void;
}

/**
 * Makes OpenTelemetry spans and metrics from kit's events: for each run, step, operation, turn, call of a tool, task and
 * compaction. Give it wherever a listener goes: `onEvent` of an agent, of `openAgents` and `openService`, `app.onEvent`.
 * It enters `@opentelemetry/api` alone; without an SDK, nothing is recorded.
 *
 * @example
 * import { openService } from "kit";
 * import { createOpenTelemetryObserver } from "kit/otel";
 *
 * const service = await openService({ onEvent: createOpenTelemetryObserver() });
 */
export function createOpenTelemetryObserver(options: OpenTelemetryOptions = {}): OpenTelemetryObserver {
  const observer = new EventSpans(options);
  const observe = (event: KitEvent): void => observer.receive(event);
  return Object.defineProperty(
    Object.assign(observe, { tracing: observer, close: () => observer.close() }),
    "open",
    {
      get: () => observer.open,
    },
  ) as unknown as OpenTelemetryObserver;
}

/**
 * Makes the spans of stored events, the same as a live observer made, with the times of the events. Work without an end
 * event makes no span. Makes no metrics, which were counted when the events happened.
 *
 * @example
 * import { openService } from "kit";
 * import { replayEvents } from "kit/otel";
 *
 * const service = await openService();
 * replayEvents(await service.engine.events.read("agent/reviewer/pr-7", { limit: 1_000 }));
 */
export function replayEvents(
  events: Iterable<KitEvent>,
  options: Omit<OpenTelemetryOptions, "meter"> = {},
): void {
  const observer = new EventSpans({ ...options, meter: false });
  for (const event of events) observer.receive(event);
  observer.close();
}
