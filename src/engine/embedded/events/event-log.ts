import { join } from "node:path";
import { setImmediate } from "node:timers/promises";
import { type Clock, elapsedOf } from "../../../base/clock.ts";
import { KitError } from "../../../base/kit-error.ts";
import { storeUnavailable } from "../../../protocol/error-code.ts";
import type { KitEvent } from "../../../protocol/event.ts";
import { DatabaseFile, isFileFault, StoreFaults } from "../../../sqlite/database-file.ts";
import type { Database } from "../../../sqlite/statements.ts";
import type { EventLog, EventReadOptions, EventSubscription, StreamState } from "../../event-log-contract.ts";
import type { Lease } from "../../shared/engine-base.ts";
import { checkReadLimit, positionAfter } from "../../shared/events/live-stream.ts";
import { createWatchers, EventReader, findGap, type Watchers } from "./event-reader.ts";
import { createEventTable, type EventTable, openEventsDatabase } from "./event-table.ts";
import { EventWriter } from "./event-writer.ts";

/** The pause between flushes. An idle stream leaves memory after up to two pauses. */
const flushMs = 90;
/** The pause after a failed write. */
const retryMs = 1_000;
const pruneEveryMs = 60_000;
const measureEveryMs = 1_000;
/** Pages that one step frees: a megabyte. */
const shrinkPages = 256;
/** How often the log checks whether its file exists. */
const fileCheckMs = 1_000;
/** The most rows that one transaction deletes. */
const pruneRows = 200;
/** Rows that `read` reads at a time, so that it does not block the event loop for long. */
const readRows = 8;

export interface EventLogOptions {
  /** The folder of `events.db`; it must exist. Without a folder, events are kept in memory. */
  readonly folder?: string | undefined;
  /** Holds the log's tables, instead of a folder. */
  readonly database?: Database | undefined;
  readonly clock: Clock;
  /** A process that does not hold the lease can only read. */
  readonly lease: Lease;
  readonly retention?: EventRetention;
  /** Whether old events can be removed now, or the clock may have been set forward by mistake. Default: always true. */
  readonly mayRemove?: () => boolean;
}

/** Retention. Older events are deleted in the background; the indexes of a stream continue. */
export interface EventRetention {
  /** Default 7 days. */
  readonly maxAgeMs?: number;
  /** Events kept per stream; default 100,000. The log can briefly hold a few more. */
  readonly maxEvents?: number;
  /** Size of all streams in bytes; default 1 GiB. Above it the oldest events are deleted, until nine tenths are left. */
  readonly maxBytes?: number;
}

/** The event log of an engine's folder. */
export class EmbeddedEventLog implements EventLog {
  readonly #database: Database;
  readonly #file: DatabaseFile;
  readonly #table: EventTable;
  readonly #writer: EventWriter;
  readonly #watchers: Watchers;
  readonly #clock: Clock;
  readonly #maxAgeMs: number;
  readonly #maxBytes: number;
  readonly #mayRemove: () => boolean;
  readonly #closing = new AbortController();
  #isFlushing = false;
  #pruneAtMs = 0;
  #measureAtMs = 0;
  /** Whether the log was above its size limit, and is not far enough below it yet. */
  #isOver = false;

  /** Opens the log. Throws `unavailable` if the file is not an event log. */
  constructor({ folder, database, clock, lease, retention = {}, mayRemove = () => true }: EventLogOptions) {
    const { maxAgeMs = 7 * 24 * 3_600_000, maxEvents = 100_000, maxBytes = 1_073_741_824 } = retention;
    this.#clock = clock;
    this.#maxAgeMs = maxAgeMs;
    this.#maxBytes = maxBytes;
    this.#mayRemove = mayRemove;
    this.#database = openEventsDatabase(database ?? folder);
    this.#file = new DatabaseFile({
      store: "The event log",
      file: folder === undefined ? undefined : join(folder, "events.db"),
    });
    this.#table = createEventTable(this.#database);
    this.#writer = new EventWriter({
      table: this.#table,
      lease,
      maxEvents,
      clock,
      onDirty: () => void this.#flushUntilIdle(),
      isRead: (stream) => this.#watchers.isRead(stream),
    });
    this.#watchers = createWatchers({
      table: this.#table,
      clock,
      signal: this.#closing.signal,
      shared: folder !== undefined,
      isWriting: () => this.#writer.isWriting(),
    });
  }

  async last(stream: string): Promise<number> {
    return stored(() => this.#writer.last(stream));
  }

  async state(stream: string): Promise<StreamState> {
    return stored(() => this.#writer.state(stream));
  }

  /** The number of events in a stream; the last index can be higher. */
  count(stream: string): number {
    return stored(() => {
      const written = this.#table.findStream(stream)?.events ?? 0;
      return written + (this.#writer.live(stream)?.unwritten ?? 0);
    });
  }

  async begin(stream: string): Promise<void> {
    const begun = stored(() => this.#writer.begin(stream));
    if (begun !== undefined) await begun;
  }

  append(stream: string, event: KitEvent): void {
    try {
      this.#writer.append(stream, event);
    } catch (error) {
      rethrow(error);
    }
    this.#watchers.wake(stream);
  }

  async flush(): Promise<void> {
    stored(() => this.#writer.flush());
  }

  async read(stream: string, options: EventReadOptions = {}): Promise<readonly KitEvent[]> {
    return await this.#read(stream, options).catch(rethrow);
  }

  subscribe(stream: string, options: EventSubscription = {}): AsyncIterable<KitEvent> {
    const sources = {
      table: this.#table,
      writer: this.#writer,
      watchers: this.#watchers,
      closing: this.#closing.signal,
    };
    return { [Symbol.asyncIterator]: () => new EventReader(sources, stream, options) };
  }

  end(stream: string): void {
    stored(() => this.#writer.end(stream));
    this.#watchers.wake(stream);
  }

  async delete(stream: string): Promise<void> {
    const id = stored(() => this.#writer.remove(stream));
    this.#watchers.wake(stream);
    if (id === undefined) return;
    const deleteSome = (): boolean => this.#writer.fenced(() => this.#table.deleteOrphans(id, pruneRows));
    while (stored(deleteSome)) await setImmediate();
  }

  /** Whether a reader in this process reads the stream or waits for new events. */
  isRead(stream: string): boolean {
    return this.#watchers.isRead(stream);
  }

  /** The problem of the log, for `Engine.problem`. */
  problem(): KitError | undefined {
    return this.#file.problem();
  }

  /** Flushes the events, and ends all readers. Call it before the lease is released. */
  close(): void {
    if (this.#closing.signal.aborted) return;
    try {
      stored(() => this.#writer.close());
    } finally {
      this.#closing.abort();
      this.#watchers.wakeAll();
      this.#database.close();
    }
  }

  async #flushUntilIdle(): Promise<void> {
    if (this.#isFlushing) return;
    this.#isFlushing = true;
    try {
      for (let state = "more"; state !== "idle"; ) {
        await this.#clock.sleep(state === "failed" ? retryMs : flushMs, this.#closing.signal);
        state = this.#write();
        if (!this.#writer.evictIdle() && state === "written") state = "idle";
      }
    } catch {
      // The log is closing.
    } finally {
      this.#isFlushing = false;
    }
  }

  /** Writes due events. Failed events stay due and are retried; `append` throws once too many wait. */
  #write(): "written" | "more" | "failed" {
    try {
      this.#writer.flush();
      this.#file.check(fileCheckMs);
      const joins = this.#writer.joinFinished();
      return this.#prune() || this.#shrink() || joins ? "more" : "written";
    } catch {
      return "failed";
    }
  }

  /** Deletes some rows that are too old; true if there are more. */
  #prune(): boolean {
    const now = elapsedOf(this.#clock);
    if (now < this.#pruneAtMs || !this.#writer.isWriting()) return false;
    const before = this.#clock.now() - this.#maxAgeMs;
    const more = this.#mayRemove() && this.#writer.fenced(() => this.#table.deleteBefore(before, pruneRows));
    if (!more) this.#pruneAtMs = now + pruneEveryMs;
    return more;
  }

  /** Deletes some rows beyond the size limit, and returns free pages of the file to the disk; true if there is more to do. */
  #shrink(): boolean {
    const now = elapsedOf(this.#clock);
    if ((now < this.#measureAtMs && !this.#isOver) || !this.#writer.isWriting()) return false;
    this.#measureAtMs = now + measureEveryMs;
    const used = this.#table.usedBytes();
    const least = this.#maxBytes * 0.9;
    this.#isOver = used > (this.#isOver ? least : this.#maxBytes);
    if (this.#isOver) this.#writer.fenced(() => this.#table.deleteBytes(used - least, pruneRows));
    const isFree = this.#table.freePages(shrinkPages);
    if (isFree) this.#measureAtMs = 0;
    return this.#isOver || isFree;
  }

  async #read(stream: string, { after = 0, limit = 100, types }: EventReadOptions): Promise<KitEvent[]> {
    checkReadLimit(limit);
    const gap = findGap({ table: this.#table, writer: this.#writer }, stream, after);
    const reportsGap = gap !== undefined && (types === undefined || types.includes("gap"));
    const events: KitEvent[] = reportsGap ? [gap] : [];
    if (events.length === limit) return events;
    let cursor = gap?.index ?? after;
    for (;;) {
      const batch = this.#readBatch(stream, cursor);
      for (const event of batch) {
        if (types === undefined || types.includes(event.type)) events.push(event);
        if (events.length === limit) return events;
      }
      const last = batch.at(-1);
      if (last === undefined) return events;
      cursor = last.index;
      // A long stream can have few events of the wanted types: gives other work a turn in between.
      await setImmediate();
    }
  }

  /** A batch of events after an index; empty when there are no more. */
  #readBatch(stream: string, after: number): readonly KitEvent[] {
    const live = this.#writer.live(stream);
    const id = live?.id ?? this.#table.findStream(stream)?.id;
    const isStored = id !== undefined && (live === undefined || after < live.floor);
    const events = isStored ? this.#table.read(id, after, readRows) : [];
    if (events.length > 0 || live === undefined) return events;
    return live.tail.slice(positionAfter(live.tail, after));
  }
}

/** Runs work, and converts errors of SQLite to errors of kit. */
function stored<Value>(work: () => Value): Value {
  try {
    return work();
  } catch (error) {
    return rethrow(error);
  }
}

function rethrow(error: unknown): never {
  if (error instanceof KitError) throw error;
  const store = "The event log";
  const hint = "Check events.db in the engine's folder, and its disk.";
  if (!isFileFault(error))
    throw storeUnavailable({ store, reason: "it does not answer", hint, cause: error });
  throw new StoreFaults({ store, hint, repair: hint }).toError(error);
}
