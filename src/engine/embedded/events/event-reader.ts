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
export class EventReader implements AsyncIterator<KitEvent> {
  readonly #sources: ReaderSources;
  readonly #stream: string;
  readonly #signal: AbortSignal | undefined;
  readonly #leave: () => void;
  #cursor: number;
  #row: readonly KitEvent[] = [];
  #position = 0;
  #streamId: number | undefined;
  #waiting: Waiting | undefined;
  #isDone = false;
  /** Whether the reader listens to its signal. */
  #listens = false;

  constructor(sources: ReaderSources, stream: string, { after = 0, id, signal }: EventSubscription) {
    this.#sources = sources;
    this.#stream = stream;
    this.#signal = signal;
    this.#cursor = after;
    this.#streamId = id === undefined ? undefined : Number(id);
    this.#leave = sources.watchers.read(stream);
  }

  next(): Promise<IteratorResult<KitEvent>> {
    if (this.#waiting !== undefined) return this.#waiting.promise.then(() => this.next());
    try {
      const result = this.#step();
      if (result !== undefined) return Promise.resolve(result);
    } catch (error) {
      this.#finish();
      return Promise.reject(error);
    }
    if (!this.#listens) this.#signal?.addEventListener("abort", this.#wake, { once: true });
    this.#listens = true;
    this.#waiting = Promise.withResolvers<IteratorResult<KitEvent>>();
    this.#sources.watchers.wait(this.#stream, this.#wake);
    return this.#waiting.promise;
  }

  return(): Promise<IteratorResult<KitEvent>> {
    this.#finish();
    this.#wake();
    return Promise.resolve(ended);
  }

  /** Answers the waiting call of `next`, if there is an event or the stream has ended. */
  readonly #wake = (): void => {
    if (this.#waiting === undefined) return;
    const { resolve, reject } = this.#waiting;
    try {
      const result = this.#step();
      if (result === undefined) {
        this.#sources.watchers.wait(this.#stream, this.#wake);
        return;
      }
      this.#waiting = undefined;
      resolve(result);
    } catch (error) {
      this.#waiting = undefined;
      this.#finish();
      reject(error);
    }
  };

  /** The next event; undefined when there is none yet. */
  #step(): IteratorResult<KitEvent> | undefined {
    if (this.#isDone || this.#sources.closing.aborted || this.#signal?.aborted === true)
      return this.#finish();
    const event = this.#fromRow() ?? this.#fromStream();
    if (event === "end") return this.#finish();
    if (event === undefined) return undefined;
    this.#cursor = event.index;
    return { done: false, value: event };
  }

  #fromRow(): KitEvent | undefined {
    const event = this.#row[this.#position];
    this.#position += 1;
    if (event === undefined || this.#position === this.#row.length) this.#row = [];
    return event;
  }

  #fromStream(): KitEvent | "end" | undefined {
    const { table, writer } = this.#sources;
    const live = writer.live(this.#stream);
    const row = live ?? table.findStream(this.#stream);
    // A deleted stream has ended, even if a new stream has the same name.
    if (this.#streamId !== undefined && row?.id !== this.#streamId) return "end";
    if (row === undefined) return undefined;
    this.#streamId = row.id;
    if (this.#streamId !== undefined && (live === undefined || this.#cursor < live.floor)) {
      const gap = findGap({ table, writer }, this.#stream, this.#cursor);
      if (gap !== undefined) return gap;
      this.#row = table.read(this.#streamId, this.#cursor, 1);
      this.#position = 0;
      const event = this.#fromRow();
      if (event !== undefined) return event;
    }
    return live?.tail[positionAfter(live.tail, this.#cursor)] ?? (row.ended ? "end" : undefined);
  }

  #finish(): IteratorResult<KitEvent> {
    if (!this.#isDone) this.#leave();
    this.#isDone = true;
    this.#row = [];
    if (this.#listens) this.#signal?.removeEventListener("abort", this.#wake);
    this.#sources.watchers.leave(this.#stream, this.#wake);
    return ended;
  }
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
  const row = table.findStream(stream);
  const id = live?.id ?? row?.id;
  const oldest = id === undefined ? undefined : table.oldest(id);
  const next = oldest ?? live?.tail[0]?.index ?? (row?.last ?? 0) + 1;
  const missing_to = next - 1;
  if (missing_to <= after) return undefined;
  return toGap(stream, after, missing_to);
}

/** How often readers check for events of another process. */
const pollMs = 100;
/** The same in the process that writes, which checks only whether another process has taken over. */
const pollWritingMs = 1_000;

/** Readers that wait for new events of a stream. Each is woken once, and registers again to wait longer. */
export interface Watchers {
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
        const readerCount = (readers.get(stream) ?? 0) - 1;
        if (readerCount > 0) readers.set(stream, readerCount);
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
