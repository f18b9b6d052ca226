import { setImmediate } from "node:timers/promises";
import { type Clock, elapsedOf } from "../../../base/clock.ts";
import type { KitError } from "../../../base/kit-error.ts";
import type { KitEvent } from "../../../protocol/event.ts";
import type { EventLog, EventReadOptions, EventSubscription, StreamState } from "../../event-log-contract.ts";
import { type EngineLimits, isLost } from "../engine-base.ts";
import { type EventPage, EventReader } from "./event-reader.ts";
import { type EventRows, onlyShard, type StreamRow } from "./event-rows.ts";
import { EventWriter } from "./event-writer.ts";
import { checkReadLimit, positionAfter, toGap } from "./live-stream.ts";
import { decodeEvents, eventAfter } from "./stored-events.ts";

/** Rows that `read` reads at a time, so that it does not block the event loop for long. */
const readRows = 8;

export interface EventLogOptions {
  readonly rows: EventRows;
  readonly clock: Clock;
  readonly retention: EventRetention;
  /** Whether old events can be removed now, or the clock may have been set forward by mistake. Default: always true. */
  readonly mayRemove?: (() => boolean) | undefined;
}

/** Retention. Older events are deleted in the background; the indexes of a stream continue. */
export interface EventRetention {
  readonly maxAgeMs: number;
  /** Events kept per stream. The log can briefly hold a few more. */
  readonly maxEvents: number;
  /** Size of all streams in bytes; above it the oldest events are deleted. */
  readonly maxBytes: number;
}

export function retentionOf({ retentionMs, eventsPerStream, eventBytes }: EngineLimits): EventRetention {
  return { maxAgeMs: retentionMs, maxEvents: eventsPerStream, maxBytes: eventBytes };
}

/** The event log over the rows of a database. */
export class StoredEventLog implements EventLog {
  readonly #options: EventLogOptions;
  readonly #rows: EventRows;
  readonly #writer: EventWriter;
  readonly #readers = new Map<string, Set<EventReader>>();
  readonly #closing = new AbortController();
  /** The rows of streams that other processes write, at the last look. */
  #seen: ReadonlyMap<string, StreamRow | undefined> = new Map();
  #isPolling = false;
  #isWorking = false;
  #removeAt = 0;

  constructor(options: EventLogOptions) {
    this.#options = options;
    this.#rows = options.rows;
    this.#writer = new EventWriter({
      rows: options.rows,
      clock: options.clock,
      onDirty: () => void this.#work(),
      onChange: (stream) => this.onWritten(stream),
      isRead: (stream) => this.isRead(stream),
    });
  }

  async last(stream: string): Promise<number> {
    const live = this.#writer.live(stream);
    if (live !== undefined) return live.last;
    if (this.#rows.refusal(stream) !== undefined) return (await this.#find(stream))?.last ?? 0;
    try {
      // The claim prevents an earlier writer from using further indexes.
      await this.#writer.begin(stream, false);
    } catch {
      return (await this.state(stream)).highest;
    }
    return this.#writer.find(stream)?.last ?? (await this.#find(stream))?.last ?? 0;
  }

  async state(stream: string): Promise<StreamState> {
    const live = this.#writer.live(stream);
    if (live !== undefined) return { id: String(live.id), highest: live.last };
    const row = await this.#find(stream);
    const highest = Math.max(row?.highest ?? 0, this.#writer.find(stream)?.last ?? 0);
    return { id: row && String(row.id), highest };
  }

  async begin(stream: string): Promise<void> {
    await this.#writer.begin(stream, true);
  }

  append(stream: string, event: KitEvent): void {
    this.#writer.append(stream, event);
    this.onWritten(stream);
  }

  end(stream: string): void {
    this.#writer.end(stream);
    this.onWritten(stream);
  }

  async flush(): Promise<void> {
    await this.#writer.flush();
  }

  async read(stream: string, options: EventReadOptions = {}): Promise<readonly KitEvent[]> {
    const { after = 0, limit = 100, types } = options;
    checkReadLimit(limit);
    const events: KitEvent[] = [];
    for (let cursor = after; ; ) {
      const { events: page } = await this.#page(stream, cursor, readRows);
      for (const event of page) {
        if (types === undefined || types.includes(event.type)) events.push(event);
        if (events.length === limit) return events;
      }
      const last = page.at(-1);
      if (last === undefined) return events;
      cursor = last.index;
      // A long stream can have few events of the wanted types: gives other work a turn in between.
      await setImmediate();
    }
  }

  subscribe(stream: string, options: EventSubscription = {}): AsyncIterable<KitEvent> {
    const source = {
      live: () => this.#writer.live(stream),
      page: (after: number) => this.#page(stream, after, this.#rows.pace.readerRows),
      onEnd: (reader: EventReader) => this.#leave(stream, reader),
    };
    return {
      [Symbol.asyncIterator]: () => {
        const reader = new EventReader(source, options);
        if (this.#closing.signal.aborted) reader.finish();
        else this.#enter(stream, reader);
        return reader;
      },
    };
  }

  async delete(stream: string): Promise<void> {
    await this.#writer.remove(stream);
    await this.#rows.delete(stream);
    this.#finish(stream);
  }

  /** The numbers of events of streams, which can be lower than their last indexes; streams without events are omitted. */
  async counts(streams: readonly string[]): Promise<ReadonlyMap<string, number>> {
    if (streams.length === 0) return new Map();
    // The tails are taken before the rows are read; a row contains the last index that its count includes.
    const tails = streams.map((name) => [name, this.#writer.find(name)?.tail ?? []] as const);
    const rows = await this.#rows.find(streams);
    const counts = new Map<string, number>();
    for (const [name, tail] of tails) {
      const { events, last } = rows.get(name) ?? { events: 0, last: 0 };
      const count = events + tail.length - positionAfter(tail, last);
      if (count > 0) counts.set(name, count);
    }
    return counts;
  }

  /** Whether a reader in this process reads the stream or waits for new events. */
  isRead(stream: string): boolean {
    return this.#readers.has(stream);
  }

  /** Handles the news that a stream was changed, here or by another process. */
  onWritten(stream: string): void {
    const readers = this.#readers.get(stream);
    if (readers !== undefined) for (const reader of readers) reader.wake();
  }

  /** The problem of the log, for `Engine.problem`. */
  problem(): KitError | undefined {
    return this.#rows.problem?.();
  }

  /** Removes some of the events that are too old or too many; true if there may be more. */
  async removeOld(): Promise<boolean> {
    const { retention, clock, mayRemove = () => true } = this.#options;
    const beforeMs = mayRemove() ? clock.now() - retention.maxAgeMs : Number.NEGATIVE_INFINITY;
    return await this.#rows.remove({ ...retention, beforeMs });
  }

  /** Writes the events of all streams and releases those of shards: the next owner continues at the last index. */
  async release(shards: ReadonlySet<number>): Promise<void> {
    await this.flush();
    await this.#writer.release(shards);
  }

  /** Forgets the streams of shards that another process owns now. */
  forget(shards: ReadonlySet<number>): void {
    this.#writer.forget(shards);
  }

  /** Writes the events, releases the streams of shards, and ends all readers. Call it before the lease is released. */
  async close(shards: ReadonlySet<number> = onlyShard): Promise<void> {
    if (this.#closing.signal.aborted) return;
    try {
      await this.flush();
    } catch (error) {
      // The next writer may write already.
      if (!isLost(error)) throw error;
    } finally {
      this.#closing.abort();
      await this.#writer.release(shards).catch(() => undefined);
      for (const stream of [...this.#readers.keys()]) this.#finish(stream);
      this.#rows.close();
    }
  }

  async #find(stream: string): Promise<StreamRow | undefined> {
    return (await this.#rows.find([stream])).get(stream);
  }

  /** The next events after an index. */
  async #page(stream: string, after: number, rows: number): Promise<EventPage> {
    if (this.#writer.find(stream) !== undefined && this.#writer.live(stream) === undefined) {
      // Until this process has claimed the stream, another one may give the same indexes.
      await this.#writer.begin(stream, true).catch(() => undefined);
    }
    const live = this.#writer.live(stream);
    // Events that are written from now on are in the tail and in the rows, so none is missing.
    const tail = live?.tail ?? [];
    const row =
      live === undefined ? await this.#find(stream) : { ...live, id: live.id ?? 0, last: live.floor };
    const stored =
      row === undefined || after >= row.last ? [] : await this.#stored(stream, row, { after, rows, tail });
    if (stored.length > 0) return { events: stored, isEnded: false, id: row?.id };
    return { events: tail.slice(positionAfter(tail, after)), isEnded: row?.ended ?? false, id: row?.id };
  }

  /** Reads some of the stored events after an index, and reports those that retention has removed. */
  async #stored(
    stream: string,
    { id, last }: Pick<StreamRow, "id" | "last">,
    {
      after,
      rows,
      tail,
    }: { readonly after: number; readonly rows: number; readonly tail: readonly KitEvent[] },
  ): Promise<readonly KitEvent[]> {
    const batches = await this.#rows.read(id, after, rows);
    const events: KitEvent[] = [];
    for (const stored of batches.flatMap(({ data }) => decodeEvents(data))) {
      // After a write whose answer was lost, the next write contains its events again.
      const event = eventAfter(stored, events.at(-1)?.index ?? after);
      if (event !== undefined) events.push(event);
    }
    const [first] = batches;
    if (after <= 0 || (first !== undefined && first.first <= after + 1)) return events;
    // A jump of the indexes after a crash is not a gap: older events exist. Removed events are the oldest.
    const oldest = (await this.#rows.oldest(id)) ?? tail[0]?.index ?? last + 1;
    return oldest > after + 1 ? [toGap(stream, after, oldest - 1), ...events] : events;
  }

  /** Writes what is due, until no stream is used. Events whose write fails stay due; `append` throws once too many wait. */
  async #work(): Promise<void> {
    if (this.#isWorking) return;
    this.#isWorking = true;
    const { gatherMs, retryMs } = this.#rows.pace;
    try {
      for (let state = "more"; ; ) {
        await this.#options.clock.sleep(state === "failed" ? retryMs : gatherMs, this.#closing.signal);
        state = await this.#step().catch(() => "failed");
        if (!this.#writer.evictIdle() && state === "done") break;
      }
    } catch {
      // The log is closing.
    } finally {
      this.#isWorking = false;
    }
  }

  async #step(): Promise<"more" | "done"> {
    await this.#writer.flush();
    const joins = await this.#writer.joinFinished();
    return (await this.#removeDue()) || joins ? "more" : "done";
  }

  async #removeDue(): Promise<boolean> {
    const { removeMs } = this.#rows.pace;
    const now = elapsedOf(this.#options.clock);
    if (removeMs === undefined || now < this.#removeAt) return false;
    const more = await this.removeOld();
    if (!more) this.#removeAt = now + removeMs;
    return more;
  }

  /** Wakes the readers of streams that other processes have changed, as long as there are readers. */
  async #poll(): Promise<void> {
    if (this.#isPolling || this.#rows.pollMs === undefined) return;
    this.#isPolling = true;
    try {
      while (this.#readers.size > 0) {
        await this.#options.clock.sleep(this.#rows.pollMs, this.#closing.signal);
        await this.#wakeChanged();
      }
    } catch {
      // The log is closing.
    } finally {
      this.#isPolling = false;
    }
  }

  async #wakeChanged(): Promise<void> {
    const seen = this.#seen;
    const isForeign = (stream: string): boolean => this.#writer.live(stream) === undefined;
    try {
      if (!this.#rows.hasChanged()) return;
      const streams = [...this.#readers.keys()].filter(isForeign);
      const rows = streams.length === 0 ? new Map<string, StreamRow>() : await this.#rows.find(streams);
      this.#seen = new Map(streams.map((stream) => [stream, rows.get(stream)]));
      for (const [stream, row] of this.#seen) {
        if (!seen.has(stream) || !isSame(row, seen.get(stream))) this.onWritten(stream);
      }
    } catch {
      // Woken readers get the error from their next read.
      for (const stream of [...this.#readers.keys()].filter(isForeign)) this.onWritten(stream);
    }
  }

  #finish(stream: string): void {
    for (const reader of [...(this.#readers.get(stream) ?? [])]) reader.finish();
  }

  #enter(stream: string, reader: EventReader): void {
    const readers = this.#readers.get(stream);
    if (readers === undefined) this.#readers.set(stream, new Set([reader]));
    else readers.add(reader);
    void this.#poll();
  }

  #leave(stream: string, reader: EventReader): void {
    const readers = this.#readers.get(stream);
    readers?.delete(reader);
    if (readers?.size === 0) this.#readers.delete(stream);
  }
}

function isSame(one: StreamRow | undefined, other: StreamRow | undefined): boolean {
  return one?.id === other?.id && one?.last === other?.last && one?.ended === other?.ended;
}
