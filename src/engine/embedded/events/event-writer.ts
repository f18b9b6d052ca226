import { type Clock, elapsedOf } from "../../../base/clock.ts";
import type { KitError } from "../../../base/kit-error.ts";
import { storeUnavailable } from "../../../protocol/error-code.ts";
import type { KitEvent } from "../../../protocol/event.ts";
import { isFileFault } from "../../../sqlite/database-file.ts";
import type { StreamState } from "../../event-log-contract.ts";
import { type Lease, leaseLost } from "../../shared/engine-base.ts";
import {
  copyEvent,
  crashGap,
  type LiveStream,
  notAbove,
  settle,
  unwrittenEvents,
} from "../../shared/events/live-stream.ts";
import { joinDeltas, type OpenRun, toBatches } from "../../shared/events/stored-events.ts";
import type { EventTable, StreamRow } from "./event-table.ts";
import { createFinishedTurns, type FinishedTurns } from "./finished-turns.ts";

/** Buffered events per stream that force a flush; up to twice as many are kept while writes fail. */
const manyEvents = crashGap / 2;
/** Buffered text over all streams, in UTF-16 units, that forces a flush. */
const muchText = 1_000_000;
/** Buffered text above which `append` throws. */
const tooMuchText = 64_000_000;
/** The pause after a failed write. */
const restMs = 100;
/** Idle streams that stay in memory, so that their next event needs no lookup. About 300 bytes each. */
const maxIdle = 2_000;
/** Rows that are deleted at most per new row, once a stream has reached its limit. */
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

  /** A stream that is in memory; `undefined` also if this process may not write. */
  live(stream: string): LiveStream | undefined {
    return this.isWriting() ? this.#streams.get(stream) : undefined;
  }

  last(stream: string): number {
    // Opening the stream prevents an earlier writer from using further indexes.
    if (this.#holdsLease()) return this.#open(stream).last;
    return this.#table.findStream(stream)?.last ?? 0;
  }

  state(stream: string): StreamState {
    const live = this.live(stream);
    const row = this.#table.findStream(stream);
    const id = live?.id ?? row?.id;
    const generation = this.isWriting() ? this.#generation?.id : undefined;
    const highest = live?.last ?? (row === undefined ? 0 : this.#floorOf(row, generation));
    return { id: id === undefined ? undefined : String(id), highest };
  }

  /** Claims the row of a stream before its first append, in one write with other streams that begin now. */
  begin(stream: string): Promise<void> | undefined {
    if (!this.#holdsLease()) return undefined;
    this.#claim();
    if (this.#streams.get(stream)?.isOwn === true) return undefined;
    if (this.#beginning.size === 0) setImmediate(() => this.#claimBegun());
    let claimed = this.#beginning.get(stream);
    if (claimed === undefined) {
      claimed = Promise.withResolvers<void>();
      this.#beginning.set(stream, claimed);
    }
    return claimed.promise;
  }

  append(stream: string, event: KitEvent): void {
    const live = this.live(stream) ?? this.#open(stream);
    if (!live.isOwn) this.#claimRows([stream]);
    if (event.index <= live.last) throw notAbove(event.index, live.last);
    if (live.unwritten >= crashGap || this.#unwrittenLength > tooMuchText) throw bufferFullError();
    const { copy, length } = copyEvent(event);
    live.tail.push(copy);
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
    if (!live.isOwn) this.#claimRows([stream]);
    live.ended = true;
    this.#touch(live);
  }

  /** Removes a stream from memory and its row from disk. Returns the id with which its batches can be deleted. */
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

  /** Joins some of the deltas of finished turns; false if there are no more. Throws like `flush`. */
  joinFinished(): boolean {
    if (this.#finished.hasStretches && this.isWriting()) this.fenced(this.#finished.join)();
    return this.#finished.hasStretches;
  }

  /** Evicts the events of streams that were not used since the last call; false if no stream was used. */
  evictIdle(): boolean {
    const excess = this.#streams.size - maxIdle;
    let evicted = 0;
    for (const live of this.#streams.values()) {
      if (this.#touched.has(live) || this.#dirty.has(live)) continue;
      settle(live, this.#options.isRead(live.name));
      if (evicted >= excess || live.open !== undefined) continue;
      this.#streams.delete(live.name);
      evicted += 1;
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

  /** Whether this process holds the lease and writes, as far as it knows. */
  isWriting(): boolean {
    return this.#generation?.fence === this.#lease.fence && this.#holdsLease();
  }

  #holdsLease(): boolean {
    return this.#lease.fence > 0 && !this.#lease.signal.aborted;
  }

  /** Claims the right to write for this process, so that writes of earlier lease holders are refused. Returns its generation. */
  #claim(): number {
    if (this.#generation !== undefined && this.isWriting()) return this.#generation.id;
    const { fence, signal } = this.#lease;
    if (!this.#holdsLease()) {
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

  /** Drops the buffered events, which can no longer be written, because another process has claimed the streams. */
  #superseded(): KitError {
    this.#forget();
    return leaseLost(this.#lease.signal.reason);
  }

  /** Runs a write in a transaction, if this process is still the writer; otherwise throws `lease_lost`. */
  fenced<Value>(write: () => Value): Value {
    const generation = this.#claim();
    return this.#table.transaction(() => {
      if (this.#table.newestGeneration()?.id !== generation) throw this.#superseded();
      return write();
    });
  }

  /** The highest index that a stream may have used, for a writer of a generation. */
  #floorOf(row: StreamRow, generation: number | undefined): number {
    return row.generation === generation || this.#table.wasClosed(row.generation)
      ? row.last
      : row.last + crashGap;
  }

  #open(name: string): LiveStream {
    const generation = this.#claim();
    const live = this.#streams.get(name);
    if (live !== undefined) return live;
    const row = this.#table.findStream(name);
    const last = row === undefined ? 0 : this.#floorOf(row, generation);
    return this.#addLive(name, { ...row, id: row?.id, last, isOwn: row?.generation === generation });
  }

  #addLive(name: string, { id, isOwn, last, ended = false, events = 0 }: ClaimedRow): LiveStream {
    const written = { id, isOwn, last, floor: last, ended, stored: events };
    const live: LiveStream = { name, ...written, tail: [], unwritten: 0, length: 0, open: undefined };
    this.#streams.set(name, live);
    return live;
  }

  /**
   * Claims the rows of streams before an index is used: if this process is killed, the next writer then skips the indexes
   * that it may have used. If the disk refuses the write, the first flush claims the row instead.
   */
  #claimRows(names: readonly string[]): void {
    const foreign = names.filter((name) => this.#streams.get(name)?.isOwn !== true);
    if (foreign.length === 0) return;
    this.#unlessRefused(() => {
      const generation = this.#claim();
      const claimed = this.fenced(() =>
        foreign.map((name) => [name, this.#claimRow(name, generation)] as const),
      );
      for (const [name, row] of claimed) {
        const live = this.#streams.get(name) ?? this.#addLive(name, row);
        live.id = row.id;
        live.isOwn = true;
      }
    });
  }

  #claimBegun(): void {
    const begun = [...this.#beginning.keys()];
    const resolvers = [...this.#beginning.values()];
    this.#beginning.clear();
    try {
      if (this.isWriting()) this.#claimRows(begun);
    } catch {
      // Another process writes now: the next `append` throws `lease_lost`.
    }
    for (const { resolve } of resolvers) resolve();
  }

  /** Claims the row of a stream that may be new. Call it in a transaction. */
  #claimRow(name: string, generation: number): ClaimedRow {
    const live = this.#streams.get(name);
    if (live !== undefined) return { id: this.#claimLive(live, generation), isOwn: true, last: live.last };
    // Most streams that begin are new, so the insert comes before the lookup.
    const id = this.#table.addStream(name, generation);
    if (id !== undefined) return { id, isOwn: true, last: 0 };
    const row = this.#table.findStream(name);
    if (row === undefined) throw new Error("The row of an event stream is missing.");
    const last = this.#floorOf(row, generation);
    if (row.generation !== generation) this.#table.takeStream(row.id, generation, last);
    return { ...row, last, isOwn: true };
  }

  /** Claims the row of a live stream and returns its id. Call it in a transaction. */
  #claimLive({ name, id, floor }: LiveStream, generation: number): number {
    const rowId = id ?? this.#table.addStream(name, generation) ?? this.#table.findStream(name)?.id;
    if (rowId === undefined) throw new Error("The row of an event stream is missing.");
    if (id !== undefined) this.#table.takeStream(id, generation, floor);
    return rowId;
  }

  /**
   * Runs a write that can also happen later, and ignores faults of the file. After a fault, writes are skipped for a
   * moment: otherwise each event would wait for the program that locks the file.
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

  /** Writes the buffered events of a stream. Call it in a transaction. */
  #write(live: LiveStream, generation: number, writtenMs: number): Written {
    const id = live.isOwn && live.id !== undefined ? live.id : this.#claimLive(live, generation);
    const written = unwrittenEvents(live);
    const joined = joinDeltas(written);
    const batches = toBatches(joined.events);
    this.#table.addBatches(id, batches, { last: live.last, ended: live.ended, writtenMs });
    let stored = live.stored + joined.events.length;
    if (stored > this.#options.maxEvents) {
      // `stored` ignores joins and deletions, so the exact number is read.
      stored = this.#table.countEvents(id);
      const excess = stored - this.#options.maxEvents;
      if (excess > 0) this.#table.deleteOldest(id, excess, batches.length * pruneRatio);
    }
    return { live, id, stored, written, open: joined.open };
  }

  /** Writes all buffered events in one transaction. If it throws, they stay buffered. */
  flush(): void {
    if (this.#dirty.size === 0) return;
    const writtenMs = this.#options.clock.now();
    const generation = this.#claim();
    const all = this.fenced(() => [...this.#dirty].map((live) => this.#write(live, generation, writtenMs)));
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

type ClaimedRow = Pick<LiveStream, "id" | "isOwn" | "last"> & Partial<Pick<StreamRow, "ended" | "events">>;

interface Written {
  readonly live: LiveStream;
  readonly id: number;
  readonly stored: number;
  readonly written: readonly KitEvent[];
  readonly open: OpenRun | undefined;
}

function bufferFullError(): KitError {
  return storeUnavailable({
    store: "The event log",
    reason: "too many events wait to be written",
    hint: "The disk of the engine's folder may be full, or another program may lock events.db.",
  });
}
