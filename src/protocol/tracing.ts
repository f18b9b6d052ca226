import type { KitEvent } from "./event.ts";
import type { Message, ToolCallPart } from "./message.ts";

/**
 * The position of work in a trace, in the form of the W3C headers of these names. Callers pass it on with their work, so
 * that the spans of both are one trace.
 */
export interface TraceContext {
  /** `00-<trace id>-<span id>-<flags>`, in lower-case hexadecimal digits. */
  readonly traceparent: string;
  /** The entries of vendors, unchanged. */
  readonly tracestate?: string | undefined;
}

const parentPattern = /^([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?$/;
/** A key, optionally with a tenant, and a value of printable ASCII without `,` and `=`. */
const memberPattern =
  /^[a-z0-9][a-z0-9_\-*/@]{0,255}=[\x20-\x2b\x2d-\x3c\x3e-\x7e]{0,255}[\x21-\x2b\x2d-\x3c\x3e-\x7e]$/;

/** The W3C asks every receiver to accept at least this much. */
const maxStateLength = 512;
const maxStateMembers = 32;

/**
 * Parses the two headers. Returns undefined for a parent that is missing, repeated or invalid, which
 * the standard says to ignore. It leaves out an invalid state and keeps the parent.
 */
export function readTraceContext(traceparent: unknown, tracestate?: unknown): TraceContext | undefined {
  if (typeof traceparent !== "string" || traceparent.length > 512) return undefined;
  const text = traceparent.trim();
  const [, version, traceId, spanId, flags, rest] = parentPattern.exec(text) ?? [];
  if (version === undefined || version === "ff" || /^0+$/.test(`${traceId}`) || /^0+$/.test(`${spanId}`))
    return undefined;
  // Only later versions of the standard can have more fields.
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

/** Returns the ids in a parent from `readTraceContext` or `kit/otel`. */
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

/** The work to which a request or a call belongs. */
export interface TracePlace
  extends Pick<KitEvent, "instance_id" | "operation_id" | "agent" | "session" | "run_id" | "turn_id"> {
  readonly tool_call_id?: string | undefined;
  readonly step_id?: string | undefined;
}

/** The parts of a turn's request besides its content. No event holds them. */
export interface TurnRequest {
  /** The host of the provider; absent if kit does not know it. */
  readonly server?: ServerAddress | undefined;
  /** The description of the agent; "" for none. */
  readonly description: string;
  readonly tools: readonly TurnTool[];
}

/** Where requests go. */
export interface ServerAddress {
  readonly address: string;
  readonly port: number;
}

/** A tool that a model may call. */
export interface TurnTool {
  readonly name: string;
  readonly description?: string | undefined;
  /** A JSON Schema. */
  readonly inputSchema: unknown;
}

/** The content that a turn sends to its model. */
export interface TurnContent {
  readonly system: string;
  readonly messages: readonly Message[];
}

/**
 * A tracer, which knows the spans of the events that it traces. Callers that send requests for a turn
 * or a call pass these spans on. Kit uses the tracer of a listener that has one as `tracing`, wherever the listener gets
 * events.
 */
export interface Tracing {
  /** Whether the tracer records what models are asked. */
  readonly capturesContent: boolean;
  /** Returns the active span of the calling code; undefined if nothing is traced. */
  active(): TraceContext | undefined;
  /** Returns the span of a call, else of the turn, the operation, the step or the run. */
  of(place: TracePlace): TraceContext | undefined;
  /** Runs work with that span as the active one, for instrumented clients and loggers. */
  within<Value>(place: TracePlace, work: () => Value): Value;
  /** Receives the content that a turn sends to its model, without secrets. */
  content(place: TracePlace, content: TurnContent): void;
  /** Receives what else a turn's request has, after the event `turn_request`. */
  request?(place: TracePlace, request: TurnRequest): void;
  /** Receives the calls that an answer asks for, without secrets, before the event `turn`. */
  calls?(place: TracePlace, calls: readonly Pick<ToolCallPart, "tool_call_id" | "tool" | "args">[]): void;
  /** Receives the earlier events of work that resumes in this process, and continues the spans that have not ended. */
  recall(events: readonly KitEvent[]): void;
}

/** Returns the tracer of the first listener that has one. */
export function tracingOf(listeners: Iterable<unknown>): Tracing | undefined {
  for (const listener of listeners) {
    if (typeof listener === "function" && "tracing" in listener) return listener.tracing as Tracing;
  }
  return undefined;
}
