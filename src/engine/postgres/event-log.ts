import { setImmediate } from "node:timers/promises";
import type { KitError } from "../../base/kit-error.ts";
import { Batcher } from "../../postgres/batcher.ts";
import { storeUnavailable } from "../../protocol/error-code.ts";
import type { KitEvent } from "../../protocol/event.ts";
import type { EventLog, EventReadOptions, EventSubscription, StreamState } from "../event-log-contract.ts";
import { type Lease, leaseLost } from "../shared/engine-base.ts";
import {
  checkReadLimit,
  copyEvent,
  crashGap,
  notAbove,
  positionAfter,
} from "../shared/events/live-stream.ts";
import { joinDeltas, toBatches } from "../shared/events/stored-events.ts";
import { type EventPage, EventReader } from "./event-reader.ts";
import {
  claimStreams,
  findStream,
  readEvents,
  releaseStreams,
  type StreamRow,
  writeEvents,
} from "./event-rows.ts";
import type { PostgresBase } from "./postgres-base.ts";
import { shardOfStream } from "./shards.ts";

/** The pause between an append and its write. */
const gatherMs = 25;
/** The pause after a failed write. */
const retryMs = 500;
/** Buffered events per stream that force a flush. */
const manyEvents = crashGap / 2;
/** Written events that stay in memory for readers on this node. */
const keptEvents = 1_000;
/** Idle streams whose last index stays in memory. */
const keptStreams = 5_000;

/** A stream that this node writes. */
interface OwnStream {
  readonly name: string;
  /** The id of its row; undefined before the first claim. */
  id: number | undefined;
  /** The writer that its row names, which is this node; undefined before the claim. */
  writer: string | undefined;
  last: number;
  /** All events above this index are in the tail. */
  floor: number;
  tail: KitEvent[];
  unwritten: number;
  ended: boolean;
}

/**
 * Events in Postgres. The owner of an instance or a run numbers its events, serves readers on its node from memory, and
 * writes the events every 25 ms, all streams in one statement. Readers on other nodes get news of each write, and also poll
 * four times a second.
 */
export class PostgresEventLog implements EventLog {
  readonly #base: PostgresBase;
  readonly #ownStreams = new Map<string, OwnStream>();
  readonly #dirty = new Set<OwnStream>();
  readonly #readers = new Map<string, Set<EventReader>>();
  readonly #claims: Batcher<OwnStream, void>;
  readonly #closing = new AbortController();
  #timer: NodeJS.Timeout | undefined;
  #writing: Promise<void> = Promise.resolve();
  /** Claims wait for a release that has begun: it would end the claim. */
  #releasing: Promise<void> = Promise.resolve();
  /** How often the streams of a shard were released: a release that Postgres executes late does not end a later claim. */
  readonly #releases = new Map<number, number>();

  constructor(base: PostgresBase) {
    this.#base = base;
    this.#claims = new Batcher<OwnStream, void>((all) => this.#claimAll(all));
  }

  async last(stream: string): Promise<number> {
    if (this.#mayWrite(stream)) return (await this.#open(stream)).last;
    const row = await findStream(this.#base, stream);
    return row?.last ?? 0;
  }

  async begin(stream: string): Promise<void> {
    if (this.#mayWrite(stream)) await this.#open(stream);
  }

  async state(stream: string): Promise<StreamState> {
    const ownStream = this.#ownStreams.get(stream);
    if (ownStream?.writer !== undefined) return { id: String(ownStream.id), highest: ownStream.last };
    const row = await findStream(this.#base, stream);
    if (row === undefined) return { id: undefined, highest: ownStream?.last ?? 0 };
    const isExact = row.writer === null || row.writer === this.#writerOf(shardOfStream(stream) ?? -1);
    return { id: String(row.id), highest: row.last + (isExact ? 0 : crashGap) };
  }

  /** A stream that was not opened before (`last`, `begin`) is claimed with its first write. */
  append(stream: string, event: KitEvent): void {
    const ownStream = this.#ownStream(stream);
    if (event.index <= ownStream.last) throw notAbove(event.index, ownStream.last);
    if (ownStream.unwritten >= crashGap) throw bufferFullError();
    ownStream.tail.push(copyEvent(event).copy);
    ownStream.unwritten += 1;
    ownStream.last = event.index;
    ownStream.ended = false;
    this.#touch(ownStream);
    if (ownStream.unwritten === manyEvents) void this.#flushSoon();
    this.#wake(stream);
  }

  end(stream: string): void {
    const ownStream = this.#ownStream(stream);
    ownStream.ended = true;
    this.#touch(ownStream);
    this.#wake(stream);
  }

  /** Writes all buffered events; one statement at a time. */
  async flush(): Promise<void> {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    await this.#inTurn(() => this.#write());
  }

  async read(stream: string, options: EventReadOptions = {}): Promise<readonly KitEvent[]> {
    const { after = 0, limit = 100, types } = options;
    checkReadLimit(limit);
    const events: KitEvent[] = [];
    for (let cursor = after; ; ) {
      const { events: page } = await this.page(stream, cursor);
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
    return {
      [Symbol.asyncIterator]: () => {
        const reader: EventReader = new EventReader(this, {
          stream,
          ...options,
          closing: this.#closing.signal,
          clock: this.#base.clock,
          onEnd: () => this.#leave(stream, reader),
        });
        const readers = this.#readers.get(stream) ?? new Set();
        this.#readers.set(stream, readers.add(reader));
        return reader;
      },
    };
  }

  async delete(stream: string): Promise<void> {
    const ownStream = this.#ownStreams.get(stream);
    this.#ownStreams.delete(stream);
    if (ownStream !== undefined) this.#dirty.delete(ownStream);
    await this.#writing;
    await this.#base.database.run(
      `WITH gone AS (DELETE FROM $s.streams WHERE name = $1 RETURNING id)
       DELETE FROM $s.batches WHERE stream_id IN (SELECT id FROM gone)`,
      [stream],
    );
    for (const reader of [...(this.#readers.get(stream) ?? [])]) reader.finish();
    this.#base.news.publish(["stream", stream]);
  }

  /** The numbers of events of streams; streams without events are omitted. */
  async counts(streams: readonly string[]): Promise<ReadonlyMap<string, number>> {
    if (streams.length === 0) return new Map();
    // The tails are copied before the rows are read; a row contains the last index that its count includes.
    const tails = new Map(streams.map((name) => [name, this.#ownStreams.get(name)?.tail ?? []]));
    const rows = await this.#base.database.rows<Pick<StreamRow, "name" | "events" | "last">>(
      "SELECT name, events, last FROM $s.streams WHERE name = ANY($1)",
      [streams],
    );
    const written = new Map(rows.map((row) => [row.name, row]));
    const counts = new Map<string, number>();
    for (const [name, tail] of tails) {
      const { events, last } = written.get(name) ?? { events: 0, last: 0 };
      const count = events + tail.length - positionAfter(tail, last);
      if (count > 0) counts.set(name, count);
    }
    return counts;
  }

  isRead(stream: string): boolean {
    return this.#readers.has(stream);
  }

  /** A batch of events after an index. */
  async page(stream: string, after: number): Promise<EventPage> {
    const ownStream = this.#ownStreams.get(stream);
    // The tail is copied before the rows are read: events that are written meanwhile are in both, so none is missing.
    const tail = ownStream?.tail ?? [];
    const isClaimed = ownStream?.writer !== undefined;
    const ended = isClaimed ? ownStream.ended : undefined;
    // Until this node has claimed the stream, another one may give the same indexes.
    const newer = isClaimed ? tail.slice(positionAfter(tail, after)) : [];
    if (isClaimed && after >= ownStream.floor)
      return { events: newer, isEnded: ownStream.ended, id: String(ownStream.id) };
    const row = await findStream(this.#base, stream);
    const id = row && String(row.id);
    const stored = row === undefined ? [] : await readEvents(this.#base, row, after);
    if (stored.length > 0) return { events: stored, isEnded: false, id };
    return { events: newer, isEnded: ended ?? row?.ended ?? false, id };
  }

  /** Handles the news that another node has written to a stream. */
  onWritten(stream: string): void {
    this.#wake(stream);
  }

  /** Flushes and releases the streams of shards: the next owner continues at the last index. */
  async release(shards: ReadonlySet<number>): Promise<void> {
    await this.flush();
    await this.#inTurn(() => this.#release(shards));
  }

  /** Forgets the streams of shards that another node owns now. */
  forget(shards: ReadonlySet<number>): void {
    for (const ownStream of [...this.#ownStreams.values()]) {
      if (!shards.has(Number(shardOfStream(ownStream.name)))) continue;
      this.#ownStreams.delete(ownStream.name);
      this.#dirty.delete(ownStream);
      this.#wake(ownStream.name);
    }
  }

  /** Flushes the events, releases the streams, and ends all readers. */
  async close(): Promise<void> {
    await this.flush().catch(() => undefined);
    this.#closing.abort();
    clearTimeout(this.#timer);
    const shards = new Set(this.#base.ownership.shards);
    await this.#inTurn(() => this.#release(shards)).catch(() => undefined);
    for (const readers of [...this.#readers.values()]) for (const reader of readers) reader.wake();
  }

  #leaseOf(stream: string): Lease {
    return this.#base.ownership.leaseOfShard(shardOfStream(stream) ?? -1);
  }

  /** A node that loses its lease drops its unwritten events, so it is another writer of a shard's streams under each fence. */
  #writerOf(shard: number): string {
    const { ownership } = this.#base;
    return [ownership.node, shard, ownership.leaseOfShard(shard).fence, this.#releases.get(shard) ?? 0].join(
      "/",
    );
  }

  #mayWrite(name: string): boolean {
    return !this.#closing.signal.aborted && !this.#leaseOf(name).signal.aborted;
  }

  #ownStream(name: string): OwnStream {
    if (!this.#mayWrite(name)) throw leaseLost(this.#leaseOf(name).signal.reason);
    let ownStream = this.#ownStreams.get(name);
    if (ownStream === undefined) {
      const row = { id: undefined, writer: undefined };
      ownStream = { name, ...row, last: 0, floor: 0, tail: [], unwritten: 0, ended: false };
      this.#ownStreams.set(name, ownStream);
    }
    return ownStream;
  }

  async #open(name: string): Promise<OwnStream> {
    const ownStream = this.#ownStream(name);
    if (ownStream.writer === undefined) await this.#claims.add(ownStream);
    return ownStream;
  }

  #touch(ownStream: OwnStream): void {
    this.#dirty.add(ownStream);
    this.#timer ??= setTimeout(() => void this.#flushSoon(), gatherMs);
  }

  async #flushSoon(): Promise<void> {
    try {
      await this.flush();
    } catch {
      if (!this.#closing.signal.aborted) this.#timer ??= setTimeout(() => void this.#flushSoon(), retryMs);
    }
  }

  /** Runs a change of rows after those before it. */
  async #inTurn(work: () => Promise<void>): Promise<void> {
    const writing = this.#writing.then(work);
    this.#writing = writing.catch(() => undefined);
    await writing;
  }

  /** Releases streams of shards, except those with unwritten events: their next writer leaves a gap. */
  async #release(shards: ReadonlySet<number>): Promise<void> {
    const open: string[] = [];
    for (const ownStream of this.#ownStreams.values()) {
      if (ownStream.writer === undefined || ownStream.unwritten > 0) open.push(ownStream.name);
      else if (shards.has(Number(shardOfStream(ownStream.name)))) ownStream.writer = undefined;
    }
    const writers = [...shards].map((shard) => this.#writerOf(shard));
    for (const shard of shards) this.#releases.set(shard, (this.#releases.get(shard) ?? 0) + 1);
    const releasing = releaseStreams(this.#base, writers, open);
    this.#releasing = releasing.catch(() => undefined);
    await releasing;
  }

  async #write(): Promise<void> {
    const unclaimed = [...this.#dirty].filter(({ writer }) => writer === undefined);
    await Promise.all(unclaimed.map((ownStream) => this.#claims.add(ownStream)));
    const written = [...this.#dirty].map((ownStream) => ({
      ownStream,
      writer: ownStream.writer ?? "",
      count: ownStream.unwritten,
      ended: ownStream.ended,
      last: ownStream.last,
    }));
    if (written.length === 0) return;
    const ownNames = await writeEvents(
      this.#base,
      written.map(({ ownStream, count, ...state }) => ({
        name: ownStream.name,
        ...state,
        batches: toBatches(joinDeltas(ownStream.tail.slice(ownStream.tail.length - count)).events),
      })),
    );
    for (const state of written) this.#settle(state, ownNames.has(state.ownStream.name));
  }

  #settle(
    { ownStream, count, ended, last }: { ownStream: OwnStream; count: number; ended: boolean; last: number },
    isOurs: boolean,
  ): void {
    // Another writer has taken the stream over: the unwritten events are lost.
    if (!isOurs) {
      if (this.#ownStreams.get(ownStream.name) === ownStream) this.#ownStreams.delete(ownStream.name);
      this.#dirty.delete(ownStream);
      return;
    }
    ownStream.unwritten -= count;
    const isClean = ownStream.unwritten === 0 && ownStream.ended === ended && ownStream.last === last;
    if (isClean) this.#dirty.delete(ownStream);
    const keepCount = ownStream.unwritten + (this.#readers.has(ownStream.name) ? keptEvents : 0);
    const dropCount = Math.max(0, ownStream.tail.length - keepCount);
    if (dropCount > 0) {
      ownStream.floor = ownStream.tail[dropCount - 1]?.index ?? ownStream.floor;
      ownStream.tail = ownStream.tail.slice(dropCount);
    }
    if (isClean && this.#ownStreams.size > keptStreams && !this.#readers.has(ownStream.name))
      this.#ownStreams.delete(ownStream.name);
    this.#base.news.publish(["stream", ownStream.name]);
  }

  async #claimAll(all: readonly OwnStream[]): Promise<readonly (Error | undefined)[]> {
    await this.#releasing;
    const open = [
      ...new Map(
        all.filter(({ writer }) => writer === undefined).map((ownStream) => [ownStream.name, ownStream]),
      ).values(),
    ];
    const asked = open.map(({ name }) => ({ name, writer: this.#writerOf(shardOfStream(name) ?? -1) }));
    const rows = await claimStreams(this.#base, asked);
    const byName = new Map(rows.map((row) => [row.name, row]));
    for (const ownStream of open) {
      const row = byName.get(ownStream.name);
      if (row !== undefined) this.#noteClaim(ownStream, row);
    }
    return all.map(({ writer }) => (writer === undefined ? leaseLost() : undefined));
  }

  #noteClaim(ownStream: OwnStream, { id, writer, last, ended }: StreamRow & { writer: string }): void {
    ownStream.id = id;
    ownStream.writer = writer;
    ownStream.floor = last;
    // Drops events that were appended before the claim with an index that was already used.
    ownStream.tail.splice(0, positionAfter(ownStream.tail, last));
    ownStream.unwritten = ownStream.tail.length;
    if (ownStream.tail.length === 0 && !this.#dirty.has(ownStream)) ownStream.ended = ended;
    ownStream.last = Math.max(ownStream.last, last);
    this.#wake(ownStream.name);
  }

  #leave(stream: string, reader: EventReader): void {
    const readers = this.#readers.get(stream);
    readers?.delete(reader);
    if (readers?.size === 0) this.#readers.delete(stream);
  }

  #wake(stream: string): void {
    for (const reader of this.#readers.get(stream) ?? []) reader.wake();
  }
}

function bufferFullError(): KitError {
  return storeUnavailable({
    store: "The event log",
    reason: "too many events wait to be written",
    hint: "Postgres does not accept them, or not fast enough. Check the database and the network.",
  });
}
