import { join } from "node:path";
import { setImmediate } from "node:timers/promises";
import { type Clock, elapsedOf } from "../../../base/clock.ts";
import { KitError } from "../../../base/kit-error.ts";
import { storeUnavailable } from "../../../protocol/error-code.ts";
import type { KitEvent } from "../../../protocol/event.ts";
import { DatabaseFile, isFileFault, StoreFaults } from "../../../sqlite/database-file.ts";
import type { Database } from "../../../sqlite/statements.ts";
import type { EventLog, EventReadOptions } from "../../event-log-contract.ts";
import type { Lease } from "../../shared/engine-base.ts";
import { checkReadLimit, positionAfter } from "../../shared/events/live-stream.ts";
import { createWatchers, EventReader, findGap } from "./event-reader.ts";
import { createEventTable, openEventsDatabase } from "./event-table.ts";
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

export interface EmbeddedEventLog extends EventLog {
  /** The number of events in a stream; the last index can be higher. */
  count(stream: string): number;
  /** Whether a reader in this process reads the stream or waits for new events. */
  isRead(stream: string): boolean;
  /** The problem of the log, for `Engine.problem`. */
  problem(): KitError | undefined;
  /** Flushes the events, and ends all readers. Call it before the lease is released. */
  close(): void;
}

/** Opens the event log of an engine's folder. Throws `unavailable` if the file is not an event log. */
export function createEventLog(options: EventLogOptions): EmbeddedEventLog {
  const { folder, clock, lease, retention, mayRemove = () => true } = options;
  const database = openEventsDatabase(options.database ?? folder);
  const file = new DatabaseFile({
    store: "The event log",
    file: folder === undefined ? undefined : join(folder, "events.db"),
  });
  const table = createEventTable(database);
  const closing = new AbortController();
  const maxAgeMs = retention?.maxAgeMs ?? 7 * 24 * 3_600_000;
  let ticking = false;
  const maxBytes = retention?.maxBytes ?? 1_073_741_824;
  let pruneAtMs = 0;
  let sizeAtMs = 0;
  /** Whether the log was above its size limit, and is not far enough below it yet. */
  let isOver = false;
  const writer = new EventWriter({
    table,
    lease,
    maxEvents: retention?.maxEvents ?? 100_000,
    clock,
    onDirty() {
      if (!ticking) void tick();
    },
    isRead: (stream) => watchers.isRead(stream),
  });
  const watchers = createWatchers({
    table,
    clock,
    signal: closing.signal,
    shared: folder !== undefined,
    isWriting: () => writer.isWriting(),
  });

  async function tick(): Promise<void> {
    ticking = true;
    try {
      for (let state = "more"; state !== "idle"; ) {
        await clock.sleep(state === "failed" ? retryMs : flushMs, closing.signal);
        state = write();
        if (!writer.evictIdle() && state === "written") state = "idle";
      }
    } catch {
      // The log is closing.
    } finally {
      ticking = false;
    }
  }

  /** Writes due events. Failed events stay due and are retried; `append` throws once too many wait. */
  function write(): "written" | "more" | "failed" {
    try {
      writer.flush();
      file.check(fileCheckMs);
      const joins = writer.joinFinished();
      return prune() || shrink() || joins ? "more" : "written";
    } catch {
      return "failed";
    }
  }

  /** Deletes some rows that are too old; true if there are more. */
  function prune(): boolean {
    const now = elapsedOf(clock);
    if (now < pruneAtMs || !writer.isWriting()) return false;
    const more = mayRemove() && writer.fenced(() => table.deleteBefore(clock.now() - maxAgeMs, pruneRows));
    if (!more) pruneAtMs = now + pruneEveryMs;
    return more;
  }

  /** Deletes some rows beyond the size limit, and returns free pages of the file to the disk; true if there is more to do. */
  function shrink(): boolean {
    const now = elapsedOf(clock);
    if ((now < sizeAtMs && !isOver) || !writer.isWriting()) return false;
    sizeAtMs = now + measureEveryMs;
    const used = table.usedBytes();
    const least = maxBytes * 0.9;
    isOver = used > (isOver ? least : maxBytes);
    if (isOver) writer.fenced(() => table.deleteBytes(used - least, pruneRows));
    const isFree = table.freePages(shrinkPages);
    if (isFree) sizeAtMs = 0;
    return isOver || isFree;
  }

  /** A batch of events after an index; empty when there are no more. */
  function readBatch(stream: string, after: number): readonly KitEvent[] {
    const live = writer.live(stream);
    const id = live?.id ?? table.findStream(stream)?.id;
    const isStored = id !== undefined && (live === undefined || after < live.floor);
    const stored = isStored ? table.read(id, after, readRows) : [];
    if (stored.length > 0 || live === undefined) return stored;
    return live.tail.slice(positionAfter(live.tail, after));
  }

  async function read(stream: string, options: EventReadOptions = {}): Promise<readonly KitEvent[]> {
    const { after = 0, limit = 100, types } = options;
    checkReadLimit(limit);
    const gap = findGap({ table, writer }, stream, after);
    const reportsGap = gap !== undefined && (types === undefined || types.includes("gap"));
    const events: KitEvent[] = reportsGap ? [gap] : [];
    if (events.length === limit) return events;
    let cursor = gap?.index ?? after;
    for (;;) {
      const page = readBatch(stream, cursor);
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

  return {
    async last(stream) {
      return stored(() => writer.last(stream));
    },
    count: (stream) =>
      stored(() => (table.findStream(stream)?.events ?? 0) + (writer.live(stream)?.unwritten ?? 0)),
    async begin(stream) {
      const begun = stored(() => writer.begin(stream));
      if (begun !== undefined) await begun;
    },
    append(stream, event) {
      try {
        writer.append(stream, event);
      } catch (error) {
        rethrow(error);
      }
      watchers.wake(stream);
    },
    async flush() {
      stored(() => writer.flush());
    },
    read: async (stream, options) => read(stream, options).catch(rethrow),
    subscribe: (stream, options = {}) => ({
      [Symbol.asyncIterator]: () =>
        new EventReader({ table, writer, watchers, closing: closing.signal }, stream, options),
    }),
    end(stream) {
      stored(() => writer.end(stream));
      watchers.wake(stream);
    },
    async delete(stream) {
      const id = stored(() => writer.remove(stream));
      watchers.wake(stream);
      if (id === undefined) return;
      while (stored(() => writer.fenced(() => table.deleteOrphans(id, pruneRows)))) await setImmediate();
    },
    isRead: watchers.isRead,
    problem: () => file.problem(),
    close() {
      if (closing.signal.aborted) return;
      try {
        stored(() => writer.close());
      } finally {
        closing.abort();
        watchers.wakeAll();
        database.close();
      }
    },
  };
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
