import type { KitEvent } from "../protocol/event.ts";
import type { Tracing } from "../protocol/tracing.ts";
import type { AnswerCall } from "./content.ts";
import { turnKey } from "./conventions.ts";
import { EventSpans, type OpenTelemetryOptions } from "./event-spans.ts";

/** An event listener that creates spans and metrics: `openService({ onEvent: observer })`. */
export interface OpenTelemetryObserver {
  (event: KitEvent): void;
  /** Supplies the trace headers for calls of models, tools and MCP servers. */
  readonly tracing: Tracing;
  /** The number of open spans. */
  readonly open: number;
  /** Forgets the open spans: another process continues their work, and ends them. */
  close(): void;
}

/**
 * Creates OpenTelemetry spans and metrics from kit's events: for each run, step, operation, turn, tool call, task and
 * compaction. Pass it as an event listener: `onEvent` of an agent, of `openAgents` and `openService`, `app.onEvent`.
 * It imports only `@opentelemetry/api`; without an SDK, nothing is recorded.
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
 * Creates the spans of stored events: the same spans as a live observer, with the times of the events. Work without an
 * end event creates no span. Creates no metrics: they were counted when the events happened.
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
  const list = [...events];
  const callsByTurn = new Map<string, AnswerCall[]>();
  for (const event of list) {
    if (event.type !== "tool_start") continue;
    const calls = callsByTurn.get(turnKey(event)) ?? [];
    calls.push(event);
    callsByTurn.set(turnKey(event), calls);
  }
  for (const event of list) {
    if (event.type === "turn") observer.calls(event, callsByTurn.get(turnKey(event)) ?? []);
    observer.receive(event);
  }
  observer.close();
}
