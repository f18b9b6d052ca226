import type { KitEvent } from "../../../protocol/event.ts";
import { parseStored } from "../stored-rows.ts";

/** The longest text of an event that joined deltas form, in UTF-16 units: a reader gets it in one piece. */
const maxJoinedText = 16 * 1024;
/** Bounds of one row: a reader that has fallen behind holds one row at a time. */
const maxBatchEvents = 128;
const maxBatchLength = 32 * 1024;

/**
 * An event as the log stores it. Neighbouring deltas are joined into one event once another event follows, at the index of
 * the last delta. `parts` holds the text length of each delta, so that a reader that had some of them gets exactly the rest.
 */
export type StoredEvent = KitEvent & { readonly parts?: readonly number[] };

type Delta = Extract<KitEvent, { readonly text: string }>;
type StoredDelta = Delta & StoredEvent;

/** A row: neighbouring events of one stream. */
export interface Batch {
  readonly first: number;
  readonly last: number;
  readonly events: number;
  /** See `encodeEvents`. */
  readonly data: string;
}

/** Fields that are written only if they differ from the previous event; `null` if the event no longer has the field. */
const sharedFields = [
  "timestamp",
  "agent",
  "instance_id",
  "session",
  "operation_id",
  "run_id",
  "turn_id",
  "task_id",
  "parent_operation_id",
] as const;
const isShared: ReadonlySet<string> = new Set(sharedFields);

type Fields = Record<string, unknown>;

/** Encodes events of one stream, in order, as JSON: each event without the fields that equal those of the previous event. */
function encodeEvents(events: readonly StoredEvent[]): string {
  let before: Fields = {};
  let next = 0;
  const records = events.map((event) => {
    const fields = event as unknown as Fields;
    const record: Fields = {};
    for (const name in fields) {
      const value = fields[name];
      if (isShared.has(name) ? value !== before[name] : name !== "index" || value !== next)
        record[name] = value;
    }
    for (const name of sharedFields) {
      if (before[name] !== undefined && fields[name] === undefined) record[name] = null;
    }
    before = fields;
    next = event.index + 1;
    return record;
  });
  return JSON.stringify({ events: records });
}

/** Divides events of one stream into rows. */
export function toBatches(events: readonly StoredEvent[]): readonly Batch[] {
  const [first] = events;
  const last = events.at(-1);
  if (first === undefined || last === undefined) return [];
  const data = events.length > maxBatchEvents ? "" : encodeEvents(events);
  if (data !== "" && (events.length === 1 || data.length <= maxBatchLength)) {
    return [{ first: firstIndexOf(first), last: last.index, events: events.length, data }];
  }
  const middle = Math.min(maxBatchEvents, Math.ceil(events.length / 2));
  return [...toBatches(events.slice(0, middle)), ...toBatches(events.slice(middle))];
}

/** Decodes the rows of `encodeEvents`; earlier versions wrote an array of whole events. */
export function decodeEvents(data: string): readonly StoredEvent[] {
  // The log has written this itself, from events that were checked when they were appended.
  const stored = parseStored(data) as readonly StoredEvent[] | { readonly events: readonly Fields[] };
  if (!("events" in stored)) return stored;
  let before: Fields = {};
  let next = 0;
  return stored.events.map((record) => {
    const event: Fields = { ...record, index: record.index ?? next };
    for (const name of sharedFields) {
      if (event[name] === null) delete event[name];
      else if (event[name] === undefined && before[name] !== undefined) event[name] = before[name];
    }
    before = event;
    next = Number(event.index) + 1;
    return event as unknown as StoredEvent;
  });
}

/** The event for a reader that has read up to an index: only the new deltas; `undefined` if nothing of it is new. */
export function eventAfter(event: StoredEvent, after: number): KitEvent | undefined {
  if (event.index <= after) return undefined;
  if (event.parts === undefined || !isDelta(event)) return event;
  const { parts, ...plainEvent } = event;
  let received = 0;
  for (const length of parts.slice(0, Math.max(0, after + 1 - firstIndexOf(event)))) received += length;
  return received === 0 ? plainEvent : { ...plainEvent, text: plainEvent.text.slice(received) };
}

function firstIndexOf({ index, parts }: StoredEvent): number {
  return index + 1 - (parts?.length ?? 1);
}

/** Deltas at the end of a stream that more deltas can follow. */
export interface OpenRun {
  /** The index of the first delta. */
  readonly from: number;
  readonly last: StoredEvent;
  readonly deltas: number;
}

/** Omits deltas of arguments, and joins neighbouring deltas of one turn, except for deltas at the end, which more can follow; `all` joins these too. */
export function joinDeltas(
  events: readonly StoredEvent[],
  all = false,
): { readonly events: readonly StoredEvent[]; readonly open?: OpenRun } {
  const result: StoredEvent[] = [];
  let run: StoredDelta[] = [];
  const join = (): void => {
    for (const deltas of toParts(run)) result.push(joined(deltas));
    run = [];
  };
  for (const event of events) {
    // The call that follows has the whole arguments.
    if (event.type === "tool_args_delta") continue;
    const last = run.at(-1);
    if (last !== undefined && !isNextDelta(last, event)) join();
    if (isDelta(event)) run.push(event);
    else result.push(event);
  }
  if (all) join();
  const [first] = run;
  const last = run.at(-1);
  if (first === undefined || last === undefined) return { events: result };
  return {
    events: [...result, ...run],
    open: { from: firstIndexOf(first), last, deltas: run.length },
  };
}

/** Whether an event is the next delta of the same kind and turn. */
export function isNextDelta(last: StoredEvent, event: StoredEvent): event is StoredDelta {
  return (
    isDelta(event) &&
    event.type === last.type &&
    event.operation_id === last.operation_id &&
    event.turn_id === last.turn_id &&
    event.task_id === last.task_id &&
    firstIndexOf(event) === last.index + 1
  );
}

function isDelta(event: StoredEvent): event is StoredDelta {
  return event.type === "text_delta" || event.type === "reasoning_delta";
}

function partialOf(delta: StoredDelta): unknown {
  return delta.type === "text_delta" ? delta.partial_result : undefined;
}

/** Divides deltas into groups of bounded text length. */
function toParts(run: readonly StoredDelta[]): readonly (readonly StoredDelta[])[] {
  const parts: StoredDelta[][] = [];
  let length = 0;
  for (const delta of run) {
    length += delta.text.length;
    if (parts.length > 0 && length <= maxJoinedText) parts.at(-1)?.push(delta);
    else {
      parts.push([delta]);
      length = delta.text.length;
    }
  }
  return parts;
}

function joined(deltas: readonly StoredDelta[]): StoredEvent {
  const last = deltas.at(-1) as StoredDelta;
  if (deltas.length === 1) return last;
  const parts = deltas.flatMap((delta) => delta.parts ?? [delta.text.length]);
  const text = deltas.map((delta) => delta.text).join("");
  const partial_result = deltas.map(partialOf).findLast((value) => value !== undefined);
  return { ...last, text, parts, ...(partial_result === undefined ? undefined : { partial_result }) };
}
