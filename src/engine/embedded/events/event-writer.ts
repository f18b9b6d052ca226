import { type Clock, elapsedOf } from "../../../base/clock.ts";
import { KitError } from "../../../base/kit-error.ts";
import { storeUnavailable } from "../../../protocol/error-code.ts";
import type { KitEvent } from "../../../protocol/event.ts";
import { isFileFault } from "../../../sqlite/database-file.ts";
import type { Lease } from "../../shared/engine-base.ts";
import {
  crashGap,
  type LiveStream,
  notAbove,
  settle,
  toOwn,
  unwrittenEvents,
} from "../../shared/events/live-stream.ts";
import { joinDeltas, type OpenRun, toBatches } from "../../shared/events/stored-events.ts";
import type { EventTable, StreamRow } from "./event-table.ts";
import { createFinishedTurns, type FinishedTurns } from "./finished-turns.ts";

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
export class EventWriter {
  readonly #options: WriterOptions;
  readonly #table: EventTable;
  readonly #lease: Lease;
  readonly #streams = new Map<string, LiveStream>();
  readonly #dirty = new Set<LiveStream>();
  readonly #touched = new Set<LiveStream>();
  readonly #beginning = new Map<string, PromiseWithResolvers<void>>();
  readonly #finished: FinishedTurns;
  #unwrittenLength = 0;
  #restUntil = 0;
  #generation: { readonly id: number; readonly fence: number } | undefined;

  constructor(options: WriterOptions) {
    this.#options = options;
    this.#table = options.table;
    this.#lease = options.lease;
    this.#finished = createFinishedTurns(options.table);
  }

  /** A stream that is in memory, as far as this process may write it. */
  live(stream: string): LiveStream | undefined {
    return this.isWriting() ? this.#streams.get(stream) : undefined;
  }

  last(stream: string): number {
    // Opening the stream first revokes the right of an earlier writer to give further indexes.
    if (this.#lease.fence > 0 && !this.#lease.signal.aborted) return this.#open(stream).last;
    return this.#table.findStream(stream)?.last ?? 0;
  }

  /** Before the first append: rows of streams that begin at the same time are written together. */
  begin(stream: string): Promise<void> | undefined {
    if (!this.isWriting() && (this.#lease.fence === 0 || this.#lease.signal.aborted)) return undefined;
    this.#claim();
    if (this.#streams.get(stream)?.isOwn === true) return undefined;
    if (this.#beginning.size === 0) setImmediate(() => this.#takeBegun());
    let taken = this.#beginning.get(stream);
    if (taken === undefined) {
      taken = Promise.withResolvers<void>();
      this.#beginning.set(stream, taken);
    }
    return taken.promise;
  }

  append(stream: string, event: KitEvent): void {
    const live = (this.isWriting() ? this.#streams.get(stream) : undefined) ?? this.#open(stream);
    if (!live.isOwn) this.#takeRows([stream]);
    if (event.index <= live.last) throw notAbove(event.index, live.last);
    if (live.unwritten >= crashGap || this.#unwrittenLength > tooMuchText) throw bufferFullError();
    const { own, length } = toOwn(event);
    live.tail.push(own);
    live.unwritten += 1;
    live.length += length;
    live.last = event.index;
    live.ended = false;
    this.#unwrittenLength += length;
    this.#touch(live);
    if (this.#unwrittenLength > muchText || live.unwritten >= manyEvents)
      this.#unlessRefused(() => this.flush());
  }

  end(stream: string): void {
    const live = this.#open(stream);
    if (!live.isOwn) this.#takeRows([stream]);
    live.ended = true;
    this.#touch(live);
  }

  /** Forgets a stream, here and on disk, but for its batches; gives the id that these carry. */
  remove(stream: string): number | undefined {
    const live = this.#streams.get(stream);
    if (live !== undefined) {
      this.#streams.delete(stream);
      this.#dirty.delete(live);
      this.#touched.delete(live);
      this.#unwrittenLength -= live.length;
    }
    const id = live?.id ?? this.#table.findStream(stream)?.id;
    if (id !== undefined) this.fenced(() => this.#table.deleteStream(id));
    return id;
  }

  /** Joins some of the deltas of turns that are over; false when there are no more. Throws as `flush` does. */
  joinFinished(): boolean {
    if (this.#finished.due && this.isWriting()) this.fenced(this.#finished.join)();
    return this.#finished.due;
  }

  /** Lets go of the events of streams that were not touched since this was called last; false when all rest. */
  evictIdle(): boolean {
    const mayRest = this.#streams.size - maxKnown;
    let gone = 0;
    for (const live of this.#streams.values()) {
      if (this.#touched.has(live) || this.#dirty.has(live)) continue;
      settle(live, this.#options.isRead(live.name));
      if (gone >= mayRest || live.open !== undefined) continue;
      this.#streams.delete(live.name);
      gone += 1;
    }
    const wasTouched = this.#touched.size > 0;
    this.#touched.clear();
    return wasTouched;
  }

  close(): void {
    if (this.#generation === undefined || !this.isWriting()) return;
    this.flush();
    const { id } = this.#generation;
    this.fenced(() => this.#table.closeGeneration(id));
    this.#generation = undefined;
  }

  #forget(): void {
    this.#streams.clear();
    this.#dirty.clear();
    this.#touched.clear();
    this.#finished.forget();
    this.#unwrittenLength = 0;
    this.#generation = undefined;
  }

  /** Whether this process holds the lease, as far as it knows. */
  isWriting(): boolean {
    return (
      this.#lease.fence > 0 && !this.#lease.signal.aborted && this.#generation?.fence === this.#lease.fence
    );
  }

  /** Claims the right to write for this process, so that no earlier lease holder can write any more. */
  #claim(): number {
    if (this.#generation !== undefined && this.isWriting()) return this.#generation.id;
    const { fence, signal } = this.#lease;
    if (fence === 0 || signal.aborted) {
      if (this.#generation !== undefined && this.#table.newestGeneration()?.id !== this.#generation.id)
        this.#forget();
      throw leaseLost(signal.reason);
    }
    this.#generation = this.#table.transaction(() => {
      const newest = this.#table.newestGeneration();
      if (newest !== undefined && newest.fence > fence) throw this.#superseded();
      // The lease was lost and regained without another writer in between: the buffered events are still valid.
      if (newest !== undefined && newest.id === this.#generation?.id) {
        this.#table.renewGeneration(newest.id, fence);
        return { id: newest.id, fence };
      }
      this.#forget();
      return { id: this.#table.addGeneration(fence), fence };
    });
    return this.#generation.id;
  }

  /** Another process has claimed the streams: drops the buffered events, which cannot be written any more. */
  #superseded(): KitError {
    this.#forget();
    return leaseLost(this.#lease.signal.reason);
  }

  /** Runs a write that only the holder of the lease may do. */
  fenced<Value>(write: () => Value): Value {
    const own = this.#claim();
    return this.#table.transaction(() => {
      if (this.#table.newestGeneration()?.id !== own) throw this.#superseded();
      return write();
    });
  }

  #floorOf(row: StreamRow, own: number): number {
    return row.generation === own || this.#table.wasClosed(row.generation) ? row.last : row.last + crashGap;
  }

  #open(name: string): LiveStream {
    const own = this.#claim();
    const known = this.#streams.get(name);
    if (known !== undefined) return known;
    const row = this.#table.findStream(name);
    const last = row === undefined ? 0 : this.#floorOf(row, own);
    return this.#know(name, { ...row, id: row?.id, last, isOwn: row?.generation === own });
  }

  #know(name: string, { id, isOwn, last, ended = false, events = 0 }: KnownRow): LiveStream {
    const written = { id, isOwn, last, floor: last, ended, stored: events };
    const live: LiveStream = { name, ...written, tail: [], unwritten: 0, length: 0, open: undefined };
    this.#streams.set(name, live);
    return live;
  }

  /**
   * Before an index is given, the stream's row says that this process may have given indexes which it did not live
   * to write. A disk that refuses just now is told so with the first flush.
   */
  #takeRows(names: readonly string[]): void {
    const foreign = names.filter((name) => this.#streams.get(name)?.isOwn !== true);
    if (foreign.length === 0) return;
    this.#unlessRefused(() => {
      const own = this.#claim();
      const taken = this.fenced(() => foreign.map((name) => [name, this.#takeRow(name, own)] as const));
      for (const [name, row] of taken) {
        const live = this.#streams.get(name) ?? this.#know(name, row);
        live.id = row.id;
        live.isOwn = true;
      }
    });
  }

  #takeBegun(): void {
    const begun = [...this.#beginning.keys()];
    const resolvers = [...this.#beginning.values()];
    this.#beginning.clear();
    try {
      if (this.isWriting()) this.#takeRows(begun);
    } catch {
      // Another process writes now: the next `append` throws `lease_lost`.
    }
    for (const { resolve } of resolvers) resolve();
  }

  /** Claims the row of a stream that may be new. Call it in a transaction. */
  #takeRow(name: string, own: number): KnownRow {
    const live = this.#streams.get(name);
    if (live !== undefined) return { id: this.#take(live, own), isOwn: true, last: live.last };
    // Most streams that begin are new, so the insert comes before the lookup.
    const id = this.#table.addStream(name, own);
    if (id !== undefined) return { id, isOwn: true, last: 0 };
    const row = this.#table.findStream(name);
    if (row === undefined) throw new Error("A stream that was there is gone.");
    const last = this.#floorOf(row, own);
    if (row.generation !== own) this.#table.takeStream(row.id, own, last);
    return { ...row, last, isOwn: true };
  }

  /** Claims the stream's row for this process and returns its id. Call it in a transaction. */
  #take({ name, id, floor }: LiveStream, own: number): number {
    const known = id ?? this.#table.addStream(name, own) ?? this.#table.findStream(name)?.id;
    if (known === undefined) throw new Error("A stream that was there is gone.");
    if (id !== undefined) this.#table.takeStream(id, own, floor);
    return known;
  }

  /**
   * Writes what can be written later as well. A disk that has just refused is left alone for a moment: who writes
   * waits for other programs, and each event would.
   */
  #unlessRefused(write: () => void): void {
    if (elapsedOf(this.#options.clock) < this.#restUntil) return;
    try {
      write();
    } catch (error) {
      if (!isFileFault(error)) throw error;
      this.#restUntil = elapsedOf(this.#options.clock) + restMs;
    }
  }

  #touch(live: LiveStream): void {
    if (this.#dirty.has(live)) return;
    if (this.#dirty.size === 0) this.#options.onDirty();
    this.#dirty.add(live);
    this.#touched.add(live);
  }

  /** In a transaction. Gives the id of the stream's row, and the deltas it ends with. */
  #write(live: LiveStream, own: number, writtenMs: number): Written {
    const id = live.isOwn && live.id !== undefined ? live.id : this.#take(live, own);
    const written = unwrittenEvents(live);
    const joined = joinDeltas(written);
    const batches = toBatches(joined.events);
    this.#table.addBatches(id, batches, { last: live.last, ended: live.ended, writtenMs });
    let stored = live.stored + joined.events.length;
    if (stored > this.#options.maxEvents) {
      // Not counted here is what was joined, or deleted for its age.
      stored = this.#table.countEvents(id);
      const excess = stored - this.#options.maxEvents;
      if (excess > 0) this.#table.deleteOldest(id, excess, batches.length * pruneRatio);
    }
    return { live, id, stored, written, open: joined.open };
  }

  /** Writes what is due, in one transaction. Throws what went wrong; then it is due still. */
  flush(): void {
    if (this.#dirty.size === 0) return;
    const writtenMs = this.#options.clock.now();
    const own = this.#claim();
    const all = this.fenced(() => [...this.#dirty].map((live) => this.#write(live, own, writtenMs)));
    for (const { live, id, stored, written, open } of all) {
      live.id = id;
      live.stored = stored;
      live.isOwn = true;
      this.#finished.note(live, written, open);
      settle(live, this.#options.isRead(live.name));
    }
    this.#dirty.clear();
    this.#unwrittenLength = 0;
  }
}

type KnownRow = Pick<LiveStream, "id" | "isOwn" | "last"> & Partial<Pick<StreamRow, "ended" | "events">>;

interface Written {
  readonly live: LiveStream;
  readonly id: number;
  readonly stored: number;
  readonly written: readonly KitEvent[];
  readonly open: OpenRun | undefined;
}

function leaseLost(cause: unknown): KitError {
  return new KitError({
    code: "lease_lost",
    message: "Another process has taken over this work.",
    ...(cause === undefined ? undefined : { cause }),
  });
}

function bufferFullError(): KitError {
  return storeUnavailable({
    store: "The event log",
    reason: "too many events wait to be written",
    hint: "The disk of the engine's folder is full, or locked by another program.",
  });
}
