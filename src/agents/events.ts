import { type Clock, isoTime } from "../base/clock.ts";
import type { EventBody, KitEvent } from "../protocol/event.ts";
import type { ToolCallPart } from "../protocol/message.ts";
import {
  type TraceContext,
  type TracePlace,
  type Tracing,
  type TurnContent,
  type TurnRequest,
  tracingOf,
} from "../protocol/tracing.ts";
import { createMaskedParts } from "./masked-parts.ts";
import type { MaskedStream, SecretMask } from "./secrets.ts";

export type EventListener = (event: KitEvent) => unknown;

/** Fields that the hub adds to every event. */
export type EventScope = Pick<
  KitEvent,
  "instance_id" | "operation_id" | "run_id" | "task_id" | "parent_operation_id"
> & { readonly agent: string; readonly session: string };

/** The listeners of a whole application, which may change at any time. */
export interface EventObservers {
  readonly all: ReadonlySet<EventListener>;
  /** The tracing of the first listener that has one. */
  readonly tracing: Tracing | undefined;
}

/** Delivers events in order to all listeners. */
export interface EventHub {
  /** Adds a listener; the returned function removes it. */
  subscribe(listener: EventListener): () => void;
  publish(body: EventBody, scope: EventScope, turnId?: string): void;
  /** Returns true if there is no listener; the hub then counts an event. */
  skip(): boolean;
  /** The tracing of the first listener that has one. */
  readonly tracing: Tracing | undefined;
}

/**
 * Creates a hub for one stream of events.
 *
 * A listener is called at once, in the order of events. One that throws, or whose promise rejects,
 * is reported to `onListenerError` and gets the next event: listener errors never fail the run.
 */
export function createEventHub(options: EventHubOptions): EventHub {
  return new ListenerHub(options);
}

interface EventHubOptions {
  readonly clock: Clock;
  /** The index of the newest event of the stream so far; default 0. */
  readonly last?: number | undefined;
  /** Further listeners for every event. */
  readonly observers?: EventObservers;
  readonly onListenerError?: ((error: unknown) => void) | undefined;
}

/** A class, because each of thousands of instances has one: their methods are shared. */
class ListenerHub implements EventHub {
  readonly #clock: Clock;
  readonly #observers: EventObservers;
  readonly #onListenerError: EventHubOptions["onListenerError"];
  /** By an object of its own, so that subscribing the same listener twice means two listeners. */
  #listeners: Map<object, EventListener> | undefined;
  /** The tracing of the first of `#listeners` that has one. */
  #tracing: Tracing | undefined;
  #index: number;

  constructor({ clock, last = 0, observers = noObservers, onListenerError }: EventHubOptions) {
    this.#clock = clock;
    this.#index = last;
    this.#observers = observers;
    this.#onListenerError = onListenerError;
  }

  get tracing(): Tracing | undefined {
    return this.#observers.tracing ?? this.#tracing;
  }

  subscribe(listener: EventListener): () => void {
    const key = {};
    this.#listeners ??= new Map();
    const listeners = this.#listeners;
    listeners.set(key, listener);
    this.#tracing ??= tracingOf([listener]);
    return () => {
      listeners.delete(key);
      this.#tracing = tracingOf(listeners.values());
    };
  }

  skip(): boolean {
    if (this.#observers.all.size > 0 || (this.#listeners !== undefined && this.#listeners.size > 0))
      return false;
    this.#index += 1;
    return true;
  }

  publish(body: EventBody, scope: EventScope, turnId?: string): void {
    this.#index += 1;
    const timestamp = isoTime(this.#clock.now());
    const eventFields = { index: this.#index, timestamp, turnId };
    const isDelta = body.type === "text_delta" || body.type === "reasoning_delta";
    const event = isDelta ? toDelta(body, scope, eventFields) : toEvent(body, scope, eventFields);
    for (const observer of this.#observers.all) this.#notify(observer, event);
    for (const listener of this.#listeners?.values() ?? noListeners) this.#notify(listener, event);
  }

  #notify(listener: EventListener, event: KitEvent): void {
    try {
      const result = listener(event);
      if (result instanceof Promise) result.catch((error: unknown) => this.#report(error));
    } catch (error) {
      this.#report(error);
    }
  }

  #report(error: unknown): void {
    try {
      this.#onListenerError?.(error);
    } catch {
      // `onListenerError` itself threw; ignore it.
    }
  }
}

const noListeners: readonly never[] = [];

interface EventFields {
  readonly index: number;
  readonly timestamp: string;
  readonly turnId: string | undefined;
}

/** Copies the fields one by one: spreading a scope into each event would be the largest cost of an event. */
function toEvent(body: EventBody, scope: EventScope, fields: EventFields): KitEvent {
  const event: Writable<KitEvent> = {
    ...body,
    index: fields.index,
    timestamp: fields.timestamp,
    agent: scope.agent,
    instance_id: scope.instance_id,
    session: scope.session,
    operation_id: scope.operation_id,
  };
  if (scope.run_id !== undefined) event.run_id = scope.run_id;
  // A task that starts or ends below another task carries its own id, not that of the outer one.
  if (scope.task_id !== undefined && body.type !== "task_start" && body.type !== "task_end")
    event.task_id = scope.task_id;
  if (scope.parent_operation_id !== undefined) event.parent_operation_id = scope.parent_operation_id;
  if (fields.turnId !== undefined) event.turn_id = fields.turnId;
  return event;
}

/** Makes the frequent delta events: one object of one shape. */
function toDelta(body: DeltaBody, scope: EventScope, fields: EventFields): KitEvent {
  if (fields.turnId === undefined) return toEvent(body, scope, fields);
  const event: Writable<KitEvent> = {
    type: body.type,
    text: body.text,
    index: fields.index,
    timestamp: fields.timestamp,
    agent: scope.agent,
    instance_id: scope.instance_id,
    session: scope.session,
    operation_id: scope.operation_id,
    turn_id: fields.turnId,
  };
  if (body.type === "text_delta" && body.partial_result !== undefined)
    (event as Writable<Extract<KitEvent, { type: "text_delta" }>>).partial_result = body.partial_result;
  if (scope.run_id !== undefined) event.run_id = scope.run_id;
  if (scope.task_id !== undefined) event.task_id = scope.task_id;
  if (scope.parent_operation_id !== undefined) event.parent_operation_id = scope.parent_operation_id;
  return event;
}

type DeltaBody = Extract<EventBody, { readonly type: "text_delta" | "reasoning_delta" }>;
type Writable<Value> = { -readonly [Field in keyof Value]: Value[Field] };

type ArgsBody = Extract<EventBody, { readonly type: "tool_args_delta" }>;
export type DeltaType = DeltaBody["type"] | ArgsBody["type"];
type DeltaCall = Pick<ArgsBody, "tool_call_id" | "tool">;

/** Emits an answer while the model streams it. */
export interface DeltaStream {
  /** `call` is the call whose arguments are written. */
  onDelta(type: DeltaType, text: string, call?: DeltaCall): void;
  /** Emits a source or a file of the answer. */
  onAttachment(attachment: EventBody): void;
  /** Emits the characters that were held back because a secret could have begun with them. */
  end(): void;
}

/** The answer whose deltas are emitted, and the function that emits them. */
export interface DeltaSource {
  emit(body: EventBody): void;
  readonly mask: SecretMask | undefined;
  /** Reads the result of a typed answer while it arrives. */
  readonly partial: { push(text: string): unknown } | undefined;
  /** Returns the kind of the calls of a tool, by its name. */
  kindOf?(tool: string): Pick<ArgsBody, "kind">;
}

/** Emits the deltas of an answer, each with the typed result so far; secrets are masked even across deltas. */
export function createDeltas(source: DeltaSource): DeltaStream {
  const deltas = new PlainDeltas(source);
  const { mask } = source;
  if (mask === undefined) return deltas;
  const texts = createMaskedParts<DeltaType>(mask, (type, text) => deltas.onDelta(type, text));
  // Calls can be written in turns: what one holds back waits for its own next delta.
  let ofCalls: Map<DeltaCall, MaskedStream> | undefined;
  const emitArgs = (text: string, call: DeltaCall): void => {
    if (text !== "") deltas.onDelta("tool_args_delta", text, call);
  };
  return {
    onDelta(type, text, call) {
      if (call !== undefined) {
        ofCalls ??= new Map();
        const ofCall = ofCalls.get(call) ?? mask.stream();
        ofCalls.set(call, ofCall);
        emitArgs(ofCall.push(text), call);
        return;
      }
      texts.push(type, text);
    },
    onAttachment: (attachment) => source.emit(attachment),
    end() {
      texts.end();
      for (const [call, ofCall] of ofCalls ?? []) emitArgs(ofCall.end(), call);
    },
  };
}

/** A class: its functions would live as long as the answer takes. */
class PlainDeltas implements DeltaStream {
  readonly #source: DeltaSource;
  /** By the object, which is one for each call. */
  #written: Map<DeltaCall, Pick<ArgsBody, "offset" | "kind">> | undefined;

  constructor(source: DeltaSource) {
    this.#source = source;
    this.#written = undefined;
  }

  onDelta(type: DeltaType, text: string, call?: DeltaCall): void {
    const source = this.#source;
    if (call !== undefined) {
      this.#written ??= new Map();
      const place = this.#written.get(call) ?? { offset: 0, ...source.kindOf?.(call.tool) };
      this.#written.set(call, { ...place, offset: place.offset + text.length });
      source.emit({ type: "tool_args_delta", ...call, text, ...place });
      return;
    }
    const partial_result = type === "text_delta" ? source.partial?.push(text) : undefined;
    if (partial_result !== undefined) source.emit({ type: "text_delta", text, partial_result });
    else if (type !== "tool_args_delta") source.emit({ type, text });
  }

  onAttachment(attachment: EventBody): void {
    this.#source.emit(attachment);
  }

  end(): void {}
}

const noObservers: EventObservers = { all: new Set(), tracing: undefined };

/** A turn of an operation, or a call of one. */
type TurnPlace = Pick<TracePlace, "turn_id" | "tool_call_id">;

/** The spans of one operation, for code that calls other services. */
export interface OperationTracing {
  /** The trace headers for outgoing requests; undefined if tracing is off. */
  headers(place: TurnPlace): TraceContext | undefined;
  /** Runs `work` within the span of a call: calls to kit and to instrumented clients become its children. */
  within<Value>(place: TurnPlace, work: () => Value): Value;
  /** Records the request of a turn: its prompt only if a listener captures content. */
  notify(
    place: TurnPlace,
    turn: { readonly content: () => TurnContent; readonly request: TurnRequest },
    mask: SecretMask | undefined,
  ): void;
  /** Records the calls of an answer, whose secrets are masked. */
  notifyCalls(place: TurnPlace, calls: readonly ToolCallPart[]): void;
}

/** The part of an operation that an agent of the backend has taken over. */
export interface OperationPart {
  /** The task id on the events of the part. */
  readonly task_id: string;
  /** The turn that handed over; its own events belong to the previous part. */
  readonly turnId: string;
  readonly before: string | undefined;
  readonly startedAt: number;
}

/** The task that an event of an operation belongs to; undefined for the operation itself. */
export function taskOfPart(part: OperationPart | undefined, turnId: string | undefined): string | undefined {
  return part === undefined || part.turnId !== turnId ? part?.task_id : part.before;
}

/** The id of a task, derived from its key: the same key always gives the same id. */
export async function taskIdOf(key: string): Promise<string> {
  const digest = await crypto.subtle.digest("SHA-256", new TextEncoder().encode(key));
  let text = "";
  for (const byte of new Uint8Array(digest, 0, 13)) text += byte.toString(16).padStart(2, "0");
  return `task_${text}`;
}
