import type { KitEvent } from "./event.ts";
import type { Message } from "./message.ts";

/**
 * Where a piece of work stands in a trace, as the W3C's headers of these names say it. What asks for work hands it on, so
 * that the spans of both are one trace.
 */
export interface TraceContext {
  /** `00-<trace id>-<span id>-<flags>`, in lower-case hexadecimal digits. */
  readonly traceparent: string;
  /** The entries that vendors add, as they wrote them. */
  readonly tracestate?: string | undefined;
}

const parentPattern = /^([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?$/;
/** A name, perhaps of a tenant, and a value of printable ASCII without `,` and `=`. */
const memberPattern =
  /^[a-z0-9][a-z0-9_\-*/@]{0,255}=[\x20-\x2b\x2d-\x3c\x3e-\x7e]{0,255}[\x21-\x2b\x2d-\x3c\x3e-\x7e]$/;

/** The W3C asks every receiver to accept at least this much. */
const maxStateLength = 512;
const maxStateMembers = 32;

/**
 * Reads the two headers as they came. Undefined for a parent that is missing, repeated or none: it is ignored, as
 * the standard asks. A state that is none is left out, and the parent kept.
 */
export function readTraceContext(traceparent: unknown, tracestate?: unknown): TraceContext | undefined {
  if (typeof traceparent !== "string" || traceparent.length > 512) return undefined;
  const text = traceparent.trim();
  const [, version, traceId, spanId, flags, rest] = parentPattern.exec(text) ?? [];
  if (version === undefined || version === "ff" || /^0+$/.test(`${traceId}`) || /^0+$/.test(`${spanId}`))
    return undefined;
  // Only later versions of the standard may say more.
  if (version === "00" && rest !== undefined) return undefined;
  const parent = `00-${traceId}-${spanId}-${flags}`;
  const state = readState(tracestate);
  return state === undefined ? { traceparent: parent } : { traceparent: parent, tracestate: state };
}

function readState(state: unknown): string | undefined {
  if (typeof state !== "string" || state.length > maxStateLength) return undefined;
  const members = state
    .split(",")
    .map((member) => member.trim())
    .filter((member) => member !== "");
  const names = new Set(members.map((member) => member.slice(0, member.indexOf("="))));
  const isState =
    members.length > 0 &&
    members.length <= maxStateMembers &&
    names.size === members.length &&
    members.every((member) => memberPattern.test(member));
  return isState ? members.join(",") : undefined;
}

/** The ids of a parent that `readTraceContext` or `kit/otel` gave. */
export function traceIdsOf({ traceparent }: TraceContext): {
  readonly trace_id: string;
  readonly span_id: string;
  readonly isSampled: boolean;
} {
  return {
    trace_id: traceparent.slice(3, 35),
    span_id: traceparent.slice(36, 52),
    isSampled: (Number.parseInt(traceparent.slice(53, 55), 16) & 1) === 1,
  };
}

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
