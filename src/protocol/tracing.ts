import type { KitEvent } from "./event.ts";
import type { Message } from "./message.ts";
import type { TraceContext } from "./trace-context.ts";

/** The work that something is asked for in. */
export interface TracePlace
  extends Pick<KitEvent, "instance_id" | "operation_id" | "agent" | "session" | "run_id" | "turn_id"> {
  readonly tool_call_id?: string | undefined;
  readonly step_id?: string | undefined;
}

/** The content that a turn sends its model. */
export interface TurnContent {
  readonly system: string;
  readonly messages: readonly Message[];
}

/**
 * The tracer knows the spans of the events that it traces; callers that send requests in the name of a turn
 * or a call pass these spans on. Kit asks a listener that has a tracer under `tracing`, wherever it hears
 * events.
 */
export interface Tracing {
  /** Whether it wants to be told what models are asked. */
  readonly capturesContent: boolean;
  /** The span at work in the code that calls; undefined where nothing is traced. */
  active(): TraceContext | undefined;
  /** The span of a call, else of the turn, the operation, the step or the run. */
  of(place: TracePlace): TraceContext | undefined;
  /** Runs work as part of that span, for what looks there: instrumented clients, loggers. */
  within<Value>(place: TracePlace, work: () => Value): Value;
  /** Told what a turn asks its model, without secrets. */
  content(place: TracePlace, content: TurnContent): void;
  /** Told what was said before of work that goes on in this process: it takes up what has not ended. */
  recall(events: readonly KitEvent[]): void;
}

/** The tracing of the first of some listeners that has one. */
export function tracingOf(listeners: Iterable<unknown>): Tracing | undefined {
  for (const listener of listeners) {
    if (typeof listener === "function" && "tracing" in listener) return listener.tracing as Tracing;
  }
  return undefined;
}
