import { setImmediate } from "node:timers/promises";
import type { Clock } from "../../../base/clock.ts";
import { KitError } from "../../../base/kit-error.ts";
import { storeUnavailable } from "../../../protocol/error-code.ts";
import { DatabaseFile, isFileFault, StoreFaults } from "../../../sqlite/database-file.ts";
import { createTransaction, type Database, type Transaction } from "../../../sqlite/statements.ts";
import { type Lease, leaseLost } from "../../shared/engine-base.ts";
import type {
  Asked,
  ClaimedRow,
  EventLimits,
  EventRows,
  Released,
  StreamRow,
  StreamWrite,
  Stretch,
} from "../../shared/events/event-rows.ts";
import { crashGap } from "../../shared/events/live-stream.ts";
import { type Batch, decodeEvents, joinDeltas, toBatches } from "../../shared/events/stored-events.ts";
import {
  fileSize,
  type OldRow,
  type Row,
  type Size,
  type Statements,
  sharedSize,
  statements,
} from "./event-statements.ts";

/** How often readers look for events of another process. */
const pollMs = 100;
/** The same in the process that writes, which only finds out whether another process has taken over. */
const pollWritingMs = 1_000;
/** Pages that one step frees: a megabyte. */
const shrinkPages = 256;
/** The most rows that one transaction deletes. */
const pruneRows = 200;
/** The most rows that one transaction joins. */
const joinedRows = 256;
/** Rows that are deleted at most per new row, once a stream has reached its limit. */
const pruneRatio = 2;

const hint = "Check events.db in the engine's folder, and its disk.";
const text = { store: "The event log", hint, repair: hint };

export interface SqliteEventOptions {
  readonly database: Database;
  /** The file of the database; `undefined` if no other process uses it. */
  readonly file: string | undefined;
  readonly clock: Clock;
  readonly lease: Lease;
  /** Events kept per stream. */
  readonly maxEvents: number;
}

/** The time in which one process writes. */
interface Generation {
  readonly id: number;
  readonly writer: string;
  readonly fence: number;
}

/**
 * The rows of events in SQLite. All streams have one writer, the process that holds the lease: it adds a generation when it begins to
 * write. If it loses its lease and gains it again before another process writes, it continues its generation.
 */
export class SqliteEventRows implements EventRows {
  // A write costs a transaction, and a read of a file next to nothing.
  readonly pace = { gatherMs: 90, retryMs: 1_000, readerRows: 1, keptEvents: 0, removeMs: 1_000 };
  readonly hint = "The disk of the engine's folder may be full, or another program may lock events.db.";
  readonly #options: SqliteEventOptions;
  readonly #sql: Statements;
  readonly #transaction: Transaction;
  readonly #size: Size;
  readonly #file: DatabaseFile;
  #generation: Generation | undefined;
  /** The fence under which this process wrote before another one took over. */
  #lostFence: number | undefined;
  #version: number;
  /** Whether the events were above their size limit, and are not far enough below it yet. */
  #isOver = false;

  constructor(options: SqliteEventOptions) {
    const { database, file } = options;
    this.#options = options;
    this.#sql = statements(database);
    this.#transaction = createTransaction(database);
    this.#size = database.isShared === true ? sharedSize(database) : fileSize(database);
    this.#file = new DatabaseFile({ ...text, file });
    this.#version = this.#dataVersion();
  }

  get pollMs(): number | undefined {
    if (this.#options.file === undefined) return undefined;
    return this.#isWriting() ? pollWritingMs : pollMs;
  }

  hasChanged(): boolean {
    const before = this.#version;
    this.#version = this.#dataVersion();
    return this.#version !== before;
  }

  problem(): KitError | undefined {
    return this.#file.problem();
  }

  close(): void {
    this.#options.database.close();
  }

  shardOf(): number {
    return 0;
  }

  refusal(): KitError | undefined {
    const { fence, signal } = this.#options.lease;
    return this.#holdsLease() && fence !== this.#lostFence ? undefined : leaseLost(signal.reason);
  }

  isWriter(writer: string): boolean {
    return writer === this.#generation?.writer && this.#isWriting();
  }

  async claim(asked: readonly Asked[], claimed: (rows: readonly ClaimedRow[]) => void): Promise<void> {
    claimed(this.#write((generation) => asked.flatMap((one) => this.#claimRow(one, generation) ?? [])));
  }

  async append(writes: readonly StreamWrite[], written: (names: ReadonlySet<string>) => void): Promise<void> {
    const writtenMs = this.#options.clock.now();
    this.#write(() => {
      for (const write of writes) this.#append(write, writtenMs);
    });
    written(new Set(writes.map(({ name }) => name)));
  }

  /** Without unwritten events, the process that writes next continues all streams at their last indexes. */
  async release(_shards: ReadonlySet<number>, { open }: Released): Promise<void> {
    if (open.length > 0 || this.#generation === undefined || !this.#isWriting()) return;
    this.#write((generation) => this.#sql.closeGeneration.run(generation));
    this.#generation = undefined;
  }

  async find(streams: readonly string[]): Promise<ReadonlyMap<string, StreamRow>> {
    const generation = this.#isWriting() ? this.#generation?.id : undefined;
    return run(() => {
      const rows = new Map<string, StreamRow>();
      for (const name of streams) {
        const row = this.#sql.find.get(name);
        if (row === undefined) continue;
        const { id, last, events, ended } = row;
        rows.set(name, { id, last, events, ended: ended === 1, highest: this.#highest(row, generation) });
      }
      return rows;
    });
  }

  async read(id: number, after: number, rows: number): Promise<readonly Pick<Batch, "first" | "data">[]> {
    return run(() => this.#sql.read.all(id, after, rows));
  }

  async oldest(id: number): Promise<number | undefined> {
    return run(() => this.#sql.firstOf.get(id)?.first);
  }

  async delete(stream: string): Promise<void> {
    const id = run(() => this.#sql.find.get(stream)?.id);
    if (id === undefined) return;
    this.#write(() => this.#sql.deleteStream.run(id));
    const deleteSome = (): boolean =>
      this.#write(() => this.#sql.deleteOrphans.run(id, pruneRows)) === pruneRows;
    while (deleteSome()) await setImmediate();
  }

  async remove({ beforeMs, maxBytes }: EventLimits): Promise<boolean> {
    if (!this.#isWriting()) return false;
    const oldest = run(() => this.#sql.oldest.get(1));
    const isOld = oldest !== undefined && oldest.written_ms < beforeMs;
    if (isOld) this.#write(() => this.#deleteOldest((row) => row.written_ms < beforeMs));
    const used = run(this.#size.usedBytes);
    const least = maxBytes * 0.9;
    this.#isOver = used > (this.#isOver ? least : maxBytes);
    let excess = used - least;
    if (this.#isOver) {
      this.#write(() =>
        this.#deleteOldest(({ bytes }) => {
          if (excess <= 0) return false;
          excess -= bytes;
          return true;
        }),
      );
    }
    const isFree = run(() => this.#size.freePages(shrinkPages));
    return isOld || this.#isOver || isFree;
  }

  async join(stretches: readonly Stretch[]): Promise<readonly Stretch[]> {
    return this.#write(() => {
      const left: Stretch[] = [];
      let limit = joinedRows;
      for (const stretch of stretches) {
        if (limit === 0) left.push(stretch);
        else {
          const { count, rest } = this.#joinRows(stretch, limit);
          limit -= count;
          if (rest !== undefined) left.push(rest);
        }
      }
      return left;
    });
  }

  #dataVersion(): number {
    return Number(this.#sql.dataVersion.get()?.data_version);
  }

  #holdsLease(): boolean {
    const { fence, signal } = this.#options.lease;
    return fence > 0 && !signal.aborted;
  }

  /** Whether this process holds the lease and writes, as far as it knows. */
  #isWriting(): boolean {
    return this.#generation?.fence === this.#options.lease.fence && this.#holdsLease();
  }

  /** Runs a write in a transaction, as the newest generation; throws `lease_lost` if another process is. */
  #write<Value>(write: (generation: number) => Value): Value {
    const refusal = this.refusal();
    if (refusal !== undefined) throw refusal;
    return run(() => {
      const { value, generation } = this.#transaction(() => {
        const claimed = this.#claimGeneration();
        return { value: write(claimed.id), generation: claimed };
      });
      this.#generation = generation;
      return value;
    });
  }

  /** Call it in a transaction. Writes of earlier generations are refused from now on. */
  #claimGeneration(): Generation {
    const { fence, signal } = this.#options.lease;
    const newest = this.#sql.newestGeneration.get();
    const own = this.#generation;
    if (own !== undefined && own.id === newest?.id) {
      if (own.fence !== fence) this.#sql.renewGeneration.run(fence, own.id);
      return { ...own, fence };
    }
    if (own?.fence === fence || (newest !== undefined && newest.fence > fence)) {
      this.#lostFence = fence;
      this.#generation = undefined;
      throw leaseLost(signal.reason);
    }
    const id = Number(this.#sql.addGeneration.run(fence).lastInsertRowid);
    return { id, fence, writer: String(id) };
  }

  /** The highest index that a stream may have used, for a writer of a generation. */
  #highest({ generation, last }: Row, writer: number | undefined): number {
    const isExact = generation === writer || this.#sql.wasClosed.get(generation)?.clean === 1;
    return isExact ? last : last + crashGap;
  }

  #claimRow({ name, isNew }: Asked, generation: number): ClaimedRow | undefined {
    const writer = String(generation);
    if (isNew) {
      // Most streams that begin are new, so the insert comes before the lookup.
      const { changes, lastInsertRowid } = this.#sql.add.run(name, generation);
      if (Number(changes) > 0)
        return { id: Number(lastInsertRowid), name, writer, last: 0, ended: false, events: 0 };
    }
    const row = this.#sql.find.get(name);
    if (row === undefined) return undefined;
    const last = this.#highest(row, generation);
    if (row.generation !== generation) this.#sql.take.run(generation, last, row.id);
    return { ...row, name, writer, last, ended: row.ended === 1 };
  }

  #append({ id, batches, last, ended }: StreamWrite, writtenMs: number): void {
    let added = 0;
    for (const batch of batches) {
      added += batch.events;
      this.#sql.addBatch.run(id, batch.first, batch.last, batch.events, writtenMs, batch.data);
    }
    this.#sql.update.run(last, ended ? 1 : 0, added, id);
    const { maxEvents } = this.#options;
    // A stream has at most as many events as its last index, so most counts need not be read.
    let excess = last <= maxEvents ? 0 : (this.#sql.count.get(id)?.events ?? 0) - maxEvents;
    if (excess <= 0) return;
    for (const row of this.#sql.oldestOf.all(id, batches.length * pruneRatio)) {
      if (row.events > excess) break;
      excess -= row.events;
      this.#deleteBatch({ ...row, stream_id: id });
    }
  }

  #deleteBatch({ id, events, stream_id }: Pick<OldRow, "id" | "events" | "stream_id">): void {
    this.#sql.deleteBatch.run(id);
    this.#sql.shrink.run(events, stream_id);
  }

  /** Deletes some of the oldest rows of all streams, as long as a row is to be deleted. */
  #deleteOldest(isDue: (row: OldRow) => boolean): void {
    for (const row of this.#sql.oldest.all(pruneRows)) {
      if (!isDue(row)) return;
      this.#deleteBatch(row);
    }
  }

  /** Joins deltas in up to `limit` rows of a stretch. Returns the number of rows, and the rest of the stretch. */
  #joinRows({ id, from, to }: Stretch, limit: number): { readonly count: number; readonly rest?: Stretch } {
    const rows = this.#sql.rows.all(id, from, to, limit);
    const before = rows.flatMap(({ data }) => decodeEvents(data));
    const { events } = joinDeltas(before, true);
    const batches = toBatches(events);
    if (events.length < before.length && batches.length <= rows.length) {
      for (const [position, row] of rows.entries()) {
        const batch = batches[position];
        if (batch === undefined) this.#sql.deleteBatch.run(row.id);
        else this.#sql.replaceBatch.run(batch.first, batch.last, batch.events, batch.data, row.id);
      }
      this.#sql.shrink.run(before.length - events.length, id);
    }
    const last = rows.at(-1)?.last ?? to;
    return { count: rows.length, ...(last < to ? { rest: { id, from: last + 1, to } } : {}) };
  }
}

/** Runs work, and converts errors of SQLite to errors of kit. */
function run<Value>(work: () => Value): Value {
  try {
    return work();
  } catch (error) {
    if (error instanceof KitError) throw error;
    if (isFileFault(error)) throw new StoreFaults(text).toError(error);
    throw storeUnavailable({ store: text.store, reason: "it does not answer", hint, cause: error });
  }
}
