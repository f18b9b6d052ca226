import type { Clock } from "../../../base/clock.ts";
import type { KitEvent } from "../../../protocol/event.ts";
import type { EventSubscription } from "../../event-log-contract.ts";
import { positionAfter, toGap } from "../../shared/events/live-stream.ts";
import type { EventTable, StreamRow } from "./event-table.ts";
import type { EventWriter } from "./event-writer.ts";

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
 * Reads a stream on demand. It holds only its position, and the rest of one row while it reads from disk.
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
    // A deleted stream has ended, even if a new stream has the same name.
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

/**
 * The `gap` event for a reader that continues after an index whose next events were removed by retention.
 * `undefined` if the next event exists, or if the reader starts at the beginning.
 */
export function findGap(
  { table, writer }: { readonly table: EventTable; readonly writer: EventWriter },
  stream: string,
  after: number,
): Extract<KitEvent, { type: "gap" }> | undefined {
  if (after <= 0) return undefined;
  const live = writer.live(stream);
  const found = table.findStream(stream);
  const id = live?.id ?? found?.id;
  const oldest = id === undefined ? undefined : table.oldest(id);
  const next = oldest ?? live?.tail[0]?.index ?? (found?.last ?? 0) + 1;
  const missing_to = next - 1;
  if (missing_to <= after) return undefined;
  return toGap(stream, after, missing_to);
}

/** How often readers check for events of another process. */
const pollMs = 100;
/** The same in the process that writes, which checks only whether another process has taken over. */
const pollWritingMs = 1_000;

/** Readers that wait for new events of a stream. Each is woken once, and registers again to wait longer. */
interface Watchers {
  /** Counts a reader of a stream, whether it waits or not; the returned function uncounts it. */
  read(stream: string): () => void;
  isRead(stream: string): boolean;
  wait(stream: string, wake: () => void): void;
  leave(stream: string, wake: () => void): void;
  wake(stream: string): void;
  wakeAll(): void;
}

interface WatcherOptions {
  readonly table: EventTable;
  readonly clock: Clock;
  /** Fires when the log closes. */
  readonly signal: AbortSignal;
  /** Whether other processes can write to the log. */
  readonly shared: boolean;
  isWriting(): boolean;
}

interface Watch {
  readonly waiting: Set<() => void>;
  /** The stream's row at the last check for writes of another process. */
  seen: StreamRow | undefined;
}

export function createWatchers({ table, clock, signal, ...options }: WatcherOptions): Watchers {
  const watches = new Map<string, Watch>();
  const readers = new Map<string, number>();
  let polling = false;
  let version = table.dataVersion();

  function wake(stream: string): void {
    const watch = watches.get(stream);
    if (watch === undefined) return;
    watches.delete(stream);
    for (const call of watch.waiting) call();
  }

  async function poll(): Promise<void> {
    try {
      while (watches.size > 0 && !signal.aborted) {
        await clock.sleep(options.isWriting() ? pollWritingMs : pollMs, signal);
        wakeChanged();
      }
    } catch {
      // The log is closing, or its file cannot be read: woken readers get the error from their next read.
      for (const stream of [...watches.keys()]) wake(stream);
    } finally {
      polling = false;
    }
  }

  /** Wakes the readers of streams that another process has changed. */
  function wakeChanged(): void {
    const current = table.dataVersion();
    if (current === version) return;
    version = current;
    for (const [stream, watch] of [...watches]) {
      const row = table.findStream(stream);
      const { seen } = watch;
      watch.seen = row;
      const same = row?.id === seen?.id && row?.last === seen?.last && row?.ended === seen?.ended;
      if (!same || row === undefined) wake(stream);
    }
  }

  return {
    isRead: (stream) => readers.has(stream),
    read(stream) {
      readers.set(stream, (readers.get(stream) ?? 0) + 1);
      return () => {
        const left = (readers.get(stream) ?? 0) - 1;
        if (left > 0) readers.set(stream, left);
        else readers.delete(stream);
      };
    },
    wake,
    wakeAll() {
      for (const stream of [...watches.keys()]) wake(stream);
    },
    wait(stream, call) {
      let watch = watches.get(stream);
      if (watch === undefined) {
        watch = { waiting: new Set(), seen: undefined };
        watches.set(stream, watch);
      }
      watch.waiting.add(call);
      if (!options.shared || polling) return;
      polling = true;
      void poll();
    },
    leave(stream, call) {
      const watch = watches.get(stream);
      if (watch?.waiting.delete(call) === true && watch.waiting.size === 0) watches.delete(stream);
    },
  };
}
