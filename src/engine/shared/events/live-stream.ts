import { KitError } from "../../../base/kit-error.ts";
import type { KitEvent } from "../../../protocol/event.ts";
import type { OpenRun } from "./stored-events.ts";

/** How many events that are on disk already stay for readers who are nearly up to date. */
const maxWrittenEvents = 1_000;

/** A stream that is being written: its newest events, and which of them are not on disk yet. */
export interface LiveStream {
  readonly name: string;
  /** The id of its row; undefined until the row is written. */
  id: number | undefined;
  /** Whether its row says that this process writes it. */
  isOwn: boolean;
  /** The highest index that was given, or may have been by a process that was killed. */
  last: number;
  /** All events above this index are in the tail; it and those below are on disk. */
  floor: number;
  /** How many are on disk, at most. */
  stored: number;
  tail: KitEvent[];
  /** How many of the newest events of the tail are not on disk, and their length. */
  unwritten: number;
  length: number;
  ended: boolean;
  /** The deltas on disk that more may follow. */
  open: OpenRun | undefined;
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

/** The events that the writer has not put on disk yet. */
export function unwrittenEvents({ tail, unwritten }: LiveStream): readonly KitEvent[] {
  return unwritten === tail.length ? tail : tail.slice(tail.length - unwritten);
}

/**
 * Notes that all events are on disk. While a reader follows the stream, the newest written events stay in memory for
 * readers that are nearly up to date; older ones are dropped.
 */
export function settle(live: LiveStream, isRead: boolean): void {
  const { tail, unwritten } = live;
  const gone = isRead ? Math.max(tail.length - unwritten, tail.length - maxWrittenEvents) : tail.length;
  live.unwritten = 0;
  live.length = 0;
  if (gone === 0) return;
  live.floor = tail[gone - 1]?.index ?? live.floor;
  live.tail = tail.slice(gone);
}

/** Where a stream goes on after an unclean end: above all that the killed process can have handed out. */
export const crashGap = 10_000;

/** About what an event takes beside its texts. */
const eventOverhead = 200;

/**
 * An event as it is kept until it is written, and how long it is, about. What the code of others may change later is
 * copied; what is not JSON throws here, where it comes from.
 */
export function toOwn(event: KitEvent): { readonly own: KitEvent; readonly length: number } {
  const texts = (length: number) => ({ own: event, length: eventOverhead + length });
  switch (event.type) {
    case "text_delta": {
      if (event.partial_result === undefined) return texts(event.text.length);
      const json = JSON.stringify(event.partial_result);
      const own = { ...event, partial_result: JSON.parse(json) };
      return { own, length: eventOverhead + event.text.length + json.length };
    }
    case "reasoning_delta":
      return texts(event.text.length);
    case "tool_end":
      return texts(event.result.length);
    case "task_start":
      return texts(event.prompt.length);
    case "command_start":
    case "command_end":
      return texts(event.command.length);
    case "tool_start":
    case "approval_request": {
      const json = JSON.stringify(event.args) ?? "null";
      return { own: { ...event, args: JSON.parse(json) }, length: eventOverhead + json.length };
    }
    case "log": {
      const { data, ...rest } = event;
      const json = JSON.stringify(data);
      const own = json === undefined ? rest : { ...rest, data: JSON.parse(json) };
      return { own, length: eventOverhead + event.message.length + (json?.length ?? 0) };
    }
    default:
      return texts(0);
  }
}

export function notAbove(index: number, last: number): KitError {
  return new KitError({
    code: "conflict",
    message: `Event ${index} is not above the last one of its stream, ${last}.`,
    hint: "Number events from `await events.last(stream)` on.",
  });
}

/** The event that stands for those after an index which retention has removed, up to another index. */
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
