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
