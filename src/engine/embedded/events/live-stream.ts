import type { KitEvent } from "../../../protocol/event.ts";
import type { Batch } from "./event-table.ts";

/** Bounds of one row: what a reader who has fallen behind holds at a time. */
const maxBatchEvents = 128;
const maxBatchLength = 32 * 1024;
/** How many events that are on disk already stay for readers who are nearly up to date. */
const maxWrittenEvents = 1_000;

/** A stream that is being written: its newest events, and which of them are not on disk yet. */
export interface LiveStream {
  readonly name: string;
  /** Of its row; undefined while there is none, because it could not be written. */
  id: number | undefined;
  /** Whether its row says that this process writes it. */
  isOwn: boolean;
  /** The highest index that was given, or may have been by a process that was killed. */
  last: number;
  /** All events above this index are in the tail; it and those below are on disk. */
  floor: number;
  tail: KitEvent[];
  /** JSON of the newest events of the tail, those that are not on disk. */
  unwritten: string[];
  ended: boolean;
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

/** What is not on disk yet, as rows. */
export function toBatches(live: LiveStream): readonly Batch[] {
  const batches: Batch[] = [];
  const { tail, unwritten } = live;
  const offset = tail.length - unwritten.length;
  for (let start = 0; start < unwritten.length; ) {
    let end = start;
    let length = 0;
    while (end < unwritten.length && end - start < maxBatchEvents && length < maxBatchLength) {
      length += unwritten[end]?.length ?? 0;
      end += 1;
    }
    batches.push({
      first: tail[offset + start]?.index ?? 0,
      last: tail[offset + end - 1]?.index ?? 0,
      events: end - start,
      data: `[${unwritten.slice(start, end).join(",")}]`,
    });
    start = end;
  }
  return batches;
}

/**
 * Notes that all is on disk now. What was written just now stays for readers who are nearly up to
 * date, what was written before goes.
 */
export function settle(live: LiveStream): void {
  const { tail, unwritten } = live;
  const gone = Math.max(tail.length - unwritten.length, tail.length - maxWrittenEvents);
  live.unwritten = [];
  if (gone === 0) return;
  live.floor = tail[gone - 1]?.index ?? live.floor;
  live.tail = tail.slice(gone);
}
