import type { KitEvent } from "../../../protocol/event.ts";
import type { EventSubscription } from "../../contract.ts";
import type { EventTable } from "./event-table.ts";
import type { EventWriter } from "./event-writer.ts";
import { findGap } from "./find-gap.ts";
import { positionAfter } from "./live-stream.ts";
import type { Watchers } from "./watchers.ts";

export interface ReaderSources {
  readonly table: EventTable;
  readonly writer: EventWriter;
  readonly watchers: Watchers;
  /** Fires when the log closes. */
  readonly closing: AbortSignal;
}

interface Waiting {
  readonly promise: Promise<IteratorResult<KitEvent>>;
  readonly resolve: (result: IteratorResult<KitEvent>) => void;
  readonly reject: (error: unknown) => void;
}

const ended: IteratorResult<KitEvent> = { done: true, value: undefined };

/**
 * Reads a stream by pulling: all it holds is how far it has come, and the rest of one row while it
 * reads from disk.
 */
export function createEventReader(
  { table, writer, watchers, closing }: ReaderSources,
  stream: string,
  { after = 0, signal }: EventSubscription,
): AsyncIterator<KitEvent> {
  let cursor = after;
  let row: readonly KitEvent[] = [];
  let position = 0;
  let streamId: number | undefined;
  let waiting: Waiting | undefined;
  let done = false;
  let listens = false;
  const leave = watchers.read(stream);

  /** The next event; undefined when there is none yet. */
  function step(): IteratorResult<KitEvent> | undefined {
    if (done || closing.aborted || signal?.aborted === true) return finish();
    const event = fromRow() ?? fromStream();
    if (event === "end") return finish();
    if (event === undefined) return undefined;
    cursor = event.index;
    return { done: false, value: event };
  }

  function fromRow(): KitEvent | undefined {
    const event = row[position];
    position += 1;
    if (event === undefined || position === row.length) row = [];
    return event;
  }

  function fromStream(): KitEvent | "end" | undefined {
    const live = writer.live(stream);
    const found = live ?? table.findStream(stream);
    // A stream that is gone has ended; so has one that was made anew under its name.
    if (streamId !== undefined && found?.id !== streamId) return "end";
    if (found === undefined) return undefined;
    streamId = found.id;
    if (streamId !== undefined && (live === undefined || cursor < live.floor)) {
      const gap = findGap({ table, writer }, stream, cursor);
      if (gap !== undefined) return gap;
      row = table.read(streamId, cursor, 1);
      position = 0;
      const event = fromRow();
      if (event !== undefined) return event;
    }
    return live?.tail[positionAfter(live.tail, cursor)] ?? (found.ended ? "end" : undefined);
  }

  function finish(): IteratorResult<KitEvent> {
    if (!done) leave();
    done = true;
    row = [];
    if (listens) signal?.removeEventListener("abort", wake);
    watchers.leave(stream, wake);
    return ended;
  }

  function wake(): void {
    if (waiting === undefined) return;
    const { resolve, reject } = waiting;
    try {
      const result = step();
      if (result === undefined) {
        watchers.wait(stream, wake);
        return;
      }
      waiting = undefined;
      resolve(result);
    } catch (error) {
      waiting = undefined;
      finish();
      reject(error);
    }
  }

  function next(): Promise<IteratorResult<KitEvent>> {
    if (waiting !== undefined) return waiting.promise.then(next);
    try {
      const result = step();
      if (result !== undefined) return Promise.resolve(result);
    } catch (error) {
      finish();
      return Promise.reject(error);
    }
    if (!listens) signal?.addEventListener("abort", wake, { once: true });
    listens = true;
    waiting = Promise.withResolvers<IteratorResult<KitEvent>>();
    watchers.wait(stream, wake);
    return waiting.promise;
  }

  return {
    next,
    return() {
      finish();
      wake();
      return Promise.resolve(ended);
    },
  };
}
