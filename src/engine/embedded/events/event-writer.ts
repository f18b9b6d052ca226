import { type Clock, elapsedOf } from "../../../base/clock.ts";
import { KitError } from "../../../base/kit-error.ts";
import type { KitEvent } from "../../../protocol/event.ts";
import { storeUnavailable } from "../../../protocol/store-fault.ts";
import { isFileFault } from "../../../sqlite/sqlite-fault.ts";
import type { Lease } from "../../engine-base.ts";
import type { EventTable, StreamRow } from "./event-table.ts";
import { createFinishedTurns } from "./finished-turns.ts";
import { type LiveStream, settle, unwrittenEvents } from "./live-stream.ts";
import { joinDeltas, type OpenRun, toBatches } from "./stored-events.ts";

/** Where a stream goes on after an unclean end: above all that the killed process can have handed out. */
const crashGap = 10_000;
/** Buffered events per stream that force a flush; up to twice as many are kept while writes fail. */
const manyEvents = crashGap / 2;
/** The same over all streams, in UTF-16 units. */
const muchText = 1_000_000;
const tooMuchText = 64_000_000;
/** After a disk that refused. */
const restMs = 100;
/** Streams that rest and are known still: their next event finds its row by its number. Some 300 bytes each. */
const maxKnown = 2_000;
/** Rows that are looked at to make room for a new one, once a stream has its fill. */
const pruneRatio = 2;

export interface WriterOptions {
  readonly table: EventTable;
  readonly lease: Lease;
  readonly maxEvents: number;
  readonly clock: Clock;
  /** Called when the first event after a flush comes in. */
  onDirty(): void;
  /** Whether a reader follows a stream. */
  isRead(stream: string): boolean;
}

/** The streams that this process writes. */
export interface EventWriter {
  /** Whether this process holds the lease, as far as it knows. */
  isWriting(): boolean;
  /** A stream that is in memory, as far as this process may write it. */
  live(stream: string): LiveStream | undefined;
  last(stream: string): number;
  /** Before the first append: rows of streams that begin at the same time are written together. */
  begin(stream: string): Promise<void> | undefined;
  append(stream: string, event: KitEvent): void;
  end(stream: string): void;
  /** Forgets a stream, here and on disk, but for its batches; gives the id that these carry. */
  remove(stream: string): number | undefined;
  /** Writes what is due, in one transaction. Throws what went wrong; then it is due still. */
  flush(): void;
  /** Joins some of the deltas of turns that are over; false when there are no more. Throws as `flush` does. */
  joinFinished(): boolean;
  /** Lets go of the events of streams that were not touched since this was called last; false when all rest. */
  evictIdle(): boolean;
  /** Runs a write that only the holder of the lease may do. */
  fenced<Value>(write: () => Value): Value;
  close(): void;
}

export function createEventWriter({ table, lease, ...options }: WriterOptions): EventWriter {
  const streams = new Map<string, LiveStream>();
  const dirty = new Set<LiveStream>();
  const touched = new Set<LiveStream>();
  const beginning = new Map<string, PromiseWithResolvers<void>>();
  const finished = createFinishedTurns(table);
  let unwrittenLength = 0;
  let restUntil = 0;
  let generation: { readonly id: number; readonly fence: number } | undefined;

  function forget(): void {
    streams.clear();
    dirty.clear();
    touched.clear();
    finished.forget();
    unwrittenLength = 0;
    generation = undefined;
  }

  function isWriting(): boolean {
    return lease.fence > 0 && !lease.signal.aborted && generation?.fence === lease.fence;
  }

  /** Claims the right to write for this process, so that no earlier lease holder can write any more. */
  function claim(): number {
    if (generation !== undefined && isWriting()) return generation.id;
    const { fence, signal } = lease;
    if (fence === 0 || signal.aborted) {
      if (generation !== undefined && table.newestGeneration()?.id !== generation.id) forget();
      throw leaseLost(signal.reason);
    }
    generation = table.transaction(() => {
      const newest = table.newestGeneration();
      if (newest !== undefined && newest.fence > fence) throw superseded();
      // The lease was lost and regained without another writer in between: the buffered events are still valid.
      if (newest !== undefined && newest.id === generation?.id) {
        table.renewGeneration(newest.id, fence);
        return { id: newest.id, fence };
      }
      forget();
      return { id: table.addGeneration(fence), fence };
    });
    return generation.id;
  }

  /** Another process has claimed the streams: drops the buffered events, which cannot be written any more. */
  function superseded(): KitError {
    forget();
    return leaseLost(lease.signal.reason);
  }

  function fenced<Value>(write: () => Value): Value {
    const own = claim();
    return table.transaction(() => {
      if (table.newestGeneration()?.id !== own) throw superseded();
      return write();
    });
  }

  function floorOf(row: StreamRow, own: number): number {
    return row.generation === own || table.wasClosed(row.generation) ? row.last : row.last + crashGap;
  }

  function open(name: string): LiveStream {
    const own = claim();
    const known = streams.get(name);
    if (known !== undefined) return known;
    const row = table.findStream(name);
    const last = row === undefined ? 0 : floorOf(row, own);
    return know(name, { ...row, id: row?.id, last, isOwn: row?.generation === own });
  }

  function know(name: string, { id, isOwn, last, ended = false, events = 0 }: KnownRow): LiveStream {
    const written = { id, isOwn, last, floor: last, ended, stored: events };
    const live: LiveStream = { name, ...written, tail: [], unwritten: 0, length: 0, open: undefined };
    streams.set(name, live);
    return live;
  }

  /**
   * Before an index is given, the stream's row says that this process may have given indexes which it did not live
   * to write. A disk that refuses just now is told so with the first flush.
   */
  function takeRows(names: readonly string[]): void {
    const foreign = names.filter((name) => streams.get(name)?.isOwn !== true);
    if (foreign.length === 0) return;
    unlessRefused(() => {
      const own = claim();
      const taken = fenced(() => foreign.map((name) => [name, takeRow(name, own)] as const));
      for (const [name, row] of taken) {
        const live = streams.get(name) ?? know(name, row);
        live.id = row.id;
        live.isOwn = true;
      }
    });
  }

  function takeBegun(): void {
    const begun = [...beginning.keys()];
    const resolvers = [...beginning.values()];
    beginning.clear();
    try {
      if (isWriting()) takeRows(begun);
    } catch {
      // Another process writes now: the next `append` throws `lease_lost`.
    }
    for (const { resolve } of resolvers) resolve();
  }

  /** Claims the row of a stream that may be new. Call it in a transaction. */
  function takeRow(name: string, own: number): KnownRow {
    const live = streams.get(name);
    if (live !== undefined) return { id: take(live, own), isOwn: true, last: live.last };
    // Most streams that begin are new, so the insert comes before the lookup.
    const id = table.addStream(name, own);
    if (id !== undefined) return { id, isOwn: true, last: 0 };
    const row = table.findStream(name);
    if (row === undefined) throw new Error("A stream that was there is gone.");
    const last = floorOf(row, own);
    if (row.generation !== own) table.takeStream(row.id, own, last);
    return { ...row, last, isOwn: true };
  }

  /** Claims the stream's row for this process and returns its id. Call it in a transaction. */
  function take({ name, id, floor }: LiveStream, own: number): number {
    const known = id ?? table.addStream(name, own) ?? table.findStream(name)?.id;
    if (known === undefined) throw new Error("A stream that was there is gone.");
    if (id !== undefined) table.takeStream(id, own, floor);
    return known;
  }

  /**
   * Writes what can be written later as well. A disk that has just refused is left alone for a moment: who writes
   * waits for other programs, and each event would.
   */
  function unlessRefused(write: () => void): void {
    if (elapsedOf(options.clock) < restUntil) return;
    try {
      write();
    } catch (error) {
      if (!isFileFault(error)) throw error;
      restUntil = elapsedOf(options.clock) + restMs;
    }
  }

  function touch(live: LiveStream): void {
    if (dirty.has(live)) return;
    if (dirty.size === 0) options.onDirty();
    dirty.add(live);
    touched.add(live);
  }

  /** In a transaction. Gives the id of the stream's row, and the deltas it ends with. */
  function write(live: LiveStream, own: number, writtenMs: number): Written {
    const id = live.isOwn && live.id !== undefined ? live.id : take(live, own);
    const written = unwrittenEvents(live);
    const joined = joinDeltas(written);
    const batches = toBatches(joined.events);
    table.addBatches(id, batches, { last: live.last, ended: live.ended, writtenMs });
    let stored = live.stored + joined.events.length;
    if (stored > options.maxEvents) {
      // Not counted here is what was joined, or deleted for its age.
      stored = table.countEvents(id);
      const excess = stored - options.maxEvents;
      if (excess > 0) table.deleteOldest(id, excess, batches.length * pruneRatio);
    }
    return { live, id, stored, written, open: joined.open };
  }

  function flush(): void {
    if (dirty.size === 0) return;
    const writtenMs = options.clock.now();
    const own = claim();
    const all = fenced(() => [...dirty].map((live) => write(live, own, writtenMs)));
    for (const { live, id, stored, written, open } of all) {
      live.id = id;
      live.stored = stored;
      live.isOwn = true;
      finished.note(live, written, open);
      settle(live, options.isRead(live.name));
    }
    dirty.clear();
    unwrittenLength = 0;
  }

  return {
    isWriting,
    fenced,
    flush,
    live: (stream) => (isWriting() ? streams.get(stream) : undefined),
    last(stream) {
      // Opening the stream first revokes the right of an earlier writer to give further indexes.
      if (lease.fence > 0 && !lease.signal.aborted) return open(stream).last;
      return table.findStream(stream)?.last ?? 0;
    },
    begin(stream) {
      if (!isWriting() && (lease.fence === 0 || lease.signal.aborted)) return undefined;
      claim();
      if (streams.get(stream)?.isOwn === true) return undefined;
      if (beginning.size === 0) setImmediate(takeBegun);
      let taken = beginning.get(stream);
      if (taken === undefined) {
        taken = Promise.withResolvers<void>();
        beginning.set(stream, taken);
      }
      return taken.promise;
    },
    append(stream, event) {
      const live = (isWriting() ? streams.get(stream) : undefined) ?? open(stream);
      if (!live.isOwn) takeRows([stream]);
      if (event.index <= live.last) throw notAbove(event.index, live.last);
      if (live.unwritten >= crashGap || unwrittenLength > tooMuchText) throw full();
      const { own, length } = toOwn(event);
      live.tail.push(own);
      live.unwritten += 1;
      live.length += length;
      live.last = event.index;
      live.ended = false;
      unwrittenLength += length;
      touch(live);
      if (unwrittenLength > muchText || live.unwritten >= manyEvents) unlessRefused(flush);
    },
    end(stream) {
      const live = open(stream);
      if (!live.isOwn) takeRows([stream]);
      live.ended = true;
      touch(live);
    },
    remove(stream) {
      const live = streams.get(stream);
      if (live !== undefined) {
        streams.delete(stream);
        dirty.delete(live);
        touched.delete(live);
        unwrittenLength -= live.length;
      }
      const id = live?.id ?? table.findStream(stream)?.id;
      if (id !== undefined) fenced(() => table.deleteStream(id));
      return id;
    },
    joinFinished() {
      if (finished.due && isWriting()) fenced(finished.join)();
      return finished.due;
    },
    evictIdle() {
      const mayRest = streams.size - maxKnown;
      let gone = 0;
      for (const live of streams.values()) {
        if (touched.has(live) || dirty.has(live)) continue;
        settle(live, options.isRead(live.name));
        if (gone >= mayRest || live.open !== undefined) continue;
        streams.delete(live.name);
        gone += 1;
      }
      const wasTouched = touched.size > 0;
      touched.clear();
      return wasTouched;
    },
    close() {
      if (generation === undefined || !isWriting()) return;
      flush();
      const { id } = generation;
      fenced(() => table.closeGeneration(id));
      generation = undefined;
    },
  };
}

type KnownRow = Pick<LiveStream, "id" | "isOwn" | "last"> & Partial<Pick<StreamRow, "ended" | "events">>;

interface Written {
  readonly live: LiveStream;
  readonly id: number;
  readonly stored: number;
  readonly written: readonly KitEvent[];
  readonly open: OpenRun | undefined;
}

/** About what an event takes beside its texts. */
const eventOverhead = 200;

/**
 * An event as it is kept until it is written, and how long it is, about. What the code of others may change later is
 * copied; what is no JSON throws here, where it comes from.
 */
function toOwn(event: KitEvent): { readonly own: KitEvent; readonly length: number } {
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

function leaseLost(cause: unknown): KitError {
  return new KitError({
    code: "lease_lost",
    message: "Another process has taken over this work.",
    ...(cause === undefined ? undefined : { cause }),
  });
}

function notAbove(index: number, last: number): KitError {
  return new KitError({
    code: "conflict",
    message: `Event ${index} is not above the last one of its stream, ${last}.`,
    hint: "Number events from `await events.last(stream)` on.",
  });
}

function full(): KitError {
  return storeUnavailable({
    store: "The event log",
    reason: "too many events wait to be written",
    hint: "The disk of the engine's folder is full, or locked by another program.",
  });
}
