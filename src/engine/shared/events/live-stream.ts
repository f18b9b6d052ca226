import { KitError } from "../../../base/kit-error.ts";
import type { KitEvent } from "../../../protocol/event.ts";
import type { Stretch } from "./event-rows.ts";
import { isNextDelta, type OpenRun } from "./stored-events.ts";

/** The most written events that stay in memory for readers that are nearly up to date. */
const maxWrittenEvents = 1_000;

/** A stream that this process writes: its newest events, and how many of them are not stored yet. */
export interface LiveStream {
  readonly name: string;
  /** The id of its row; undefined before the first claim. */
  id: number | undefined;
  /** The writer that its row names, which is this process; undefined before the claim. */
  writer: string | undefined;
  /** The highest index that was used, or that an earlier writer can have used. */
  last: number;
  /** All events above this index are in the tail; the others are stored. */
  floor: number;
  tail: KitEvent[];
  /** The number of the newest events of the tail that are not stored, and their length. */
  unwritten: number;
  length: number;
  ended: boolean;
  /** The deltas at the end of the written events, if more deltas can follow. */
  open: OpenRun | undefined;
}

export function newLiveStream(name: string): LiveStream {
  const empty = { tail: [], unwritten: 0, length: 0, last: 0, floor: 0 };
  return { name, id: undefined, writer: undefined, ended: false, open: undefined, ...empty };
}

/** The position in a tail of the first event after an index. Indexes rise, mostly by one. */
export function positionAfter(tail: readonly KitEvent[], index: number): number {
  const first = tail[0];
  if (first === undefined || first.index > index) return 0;
  const guess = index - first.index;
  if (tail[guess]?.index === index) return guess + 1;
  let low = 0;
  let high = tail.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if ((tail[middle]?.index ?? Number.POSITIVE_INFINITY) <= index) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** Drops the oldest written events from memory, except the newest `kept`, but for at most 1,000. */
export function trim(live: LiveStream, kept: number): void {
  const { tail, unwritten } = live;
  const dropped = tail.length - unwritten - Math.min(kept, maxWrittenEvents);
  if (dropped <= 0) return;
  live.floor = tail[dropped - 1]?.index ?? live.floor;
  live.tail = dropped === tail.length ? [] : tail.slice(dropped);
}

/**
 * Notes the events that were just written to a stream, and the open deltas at their end. Returns the rows of a turn that took longer than
 * one write and is finished now: its deltas are spread over them.
 */
export function noteDeltas(
  live: LiveStream,
  written: readonly KitEvent[],
  open: OpenRun | undefined,
): Stretch | undefined {
  const { id, open: before } = live;
  live.open = open;
  if (before === undefined) return undefined;
  const end = written.findIndex((event, at) => !isNextDelta(written[at - 1] ?? before.last, event));
  const news = end < 0 ? written.length : end;
  const run = { from: before.from, last: written[news - 1] ?? before.last, deltas: before.deltas + news };
  if (end >= 0)
    return run.deltas > 1 && id !== undefined ? { id, from: run.from, to: run.last.index } : undefined;
  live.open = run;
  return undefined;
}

/** The gap in the indexes after a crash: larger than the number of unwritten events whose indexes readers can have seen. */
export const crashGap = 10_000;

/** The approximate size of an event without its texts, and of an item of a turn's receipt. */
const eventOverhead = 200;

/**
 * Copies an event for the buffer of unwritten events, and estimates its length. Values that the caller's code could change
 * later are cloned; a value that is not JSON throws here, in the caller's stack.
 */
export function copyEvent(event: KitEvent): { readonly copy: KitEvent; readonly length: number } {
  let copy = event;
  let length = eventOverhead;
  switch (event.type) {
    case "text_delta":
      length += event.text.length;
      if (event.partial_result !== undefined) {
        const json = JSON.stringify(event.partial_result);
        copy = { ...event, partial_result: JSON.parse(json) };
        length += json.length;
      }
      break;
    case "reasoning_delta":
    case "tool_args_delta":
      length += event.text.length;
      break;
    case "source":
      length += (event.url?.length ?? 0) + (event.title?.length ?? 0);
      break;
    case "file":
      length += event.data.length;
      break;
    case "operation_start":
    case "joined":
      length += event.message?.length ?? 0;
      break;
    case "turn_request":
      length += (event.receipt?.added?.length ?? 0) * eventOverhead;
      break;
    case "error":
      length += event.error.message.length;
      break;
    case "tool_progress":
      length += JSON.stringify(event.progress)?.length ?? 0;
      break;
    case "tool_end":
      length += event.result.length + (event.cause?.message.length ?? 0);
      break;
    case "task_start":
      length += event.prompt.length;
      break;
    case "command_start":
    case "command_end":
      length += event.command.length;
      break;
    case "approval_request": {
      const { args, message = "", schema } = event;
      const json = JSON.stringify({ args, ...(schema && { schema }) });
      copy = { ...event, ...JSON.parse(json) };
      length += json.length + message.length;
      break;
    }
    case "tool_start": {
      const json = JSON.stringify(event.args) ?? "null";
      copy = { ...event, args: JSON.parse(json) };
      length += json.length;
      break;
    }
    case "log": {
      const { data, ...rest } = event;
      const json = JSON.stringify(data);
      copy = json === undefined ? rest : { ...rest, data: JSON.parse(json) };
      length += event.message.length + (json?.length ?? 0);
      break;
    }
    case "approval": {
      const json = JSON.stringify(event.args);
      if (json !== undefined) copy = { ...event, args: JSON.parse(json) };
      length += (json?.length ?? 0) + (event.reason?.length ?? 0);
      break;
    }
    case "operation":
    case "agent_start":
    case "turn":
    case "turn_end":
    case "idle":
    case "abort_requested":
    case "aborted":
    case "task_end":
    case "gap":
    case "compaction_start":
    case "compaction_end":
    case "run_start":
    case "run_end":
    case "step_start":
    case "step_end":
      break;
    default:
      // A new event decides here what it costs. An event of a newer version, from another node, costs no more than its fields.
      event satisfies never;
  }
  return { copy, length };
}

export function notAbove(index: number, last: number): KitError {
  return new KitError({
    code: "conflict",
    message: `The event's index ${index} is not above the last index of its stream, ${last}.`,
    hint: "Number events upwards from `await events.last(stream)`.",
  });
}

/** Throws `invalid_request` for an invalid limit of `EventLog.read`. */
export function checkReadLimit(limit: number): void {
  if (Number.isInteger(limit) && limit >= 1 && limit <= 1_000) return;
  throw new KitError({
    code: "invalid_request",
    message: "The limit must be a whole number from 1 to 1,000.",
    meta: { issues: [{ path: "limit", message: "a whole number from 1 to 1,000" }] },
  });
}

/** The event that replaces the removed events after index `after`, up to and including index `missing_to`. */
export function toGap(stream: string, after: number, missing_to: number): Extract<KitEvent, { type: "gap" }> {
  const [, agent, instance_id = stream.slice(stream.indexOf("/") + 1)] =
    /^agent\/([^/]*)\/(.*)$/s.exec(stream) ?? [];
  return {
    type: "gap",
    missing_from: after + 1,
    missing_to,
    index: missing_to,
    timestamp: new Date().toISOString(),
    agent,
    instance_id,
    // The operation of a removed event is unknown; a run is its own operation.
    operation_id: agent === undefined ? instance_id : "",
    ...(agent === undefined ? { run_id: instance_id } : {}),
  };
}
