import type { KitError } from "../../../base/kit-error.ts";
import type { Batch } from "./stored-events.ts";

/**
 * The rows of streams and of their events in a database. Each call is one transaction or a few whole ones. `StoredEventLog`
 * does the rest.
 */
export interface EventRows {
  readonly pace: EventPace;
  /** Tells the user where to look if the database does not accept events. */
  readonly hint: string;
  /** The shard of a stream: the streams of a shard get and lose their writer together. */
  shardOf(stream: string): number;
  /** The error `lease_lost` if this process must not write a stream now. */
  refusal(stream: string): KitError | undefined;
  /** Whether this process is still the writer with this name, as far as it knows. */
  isWriter(writer: string): boolean;

  /**
   * Makes this process the writer of streams, and passes their rows on. A stream is missing among them if this process must not write
   * it, or if it does not exist and is not asked as new. SQLite calls `claimed` and `written` before it returns.
   */
  claim(asked: readonly Asked[], claimed: (rows: readonly ClaimedRow[]) => void): Promise<void>;
  /**
   * Writes events, and passes on the names of the streams whose writer is still the same. Rejects with `lease_lost` if no stream's
   * writer is, and never will be.
   */
  append(writes: readonly StreamWrite[], written: (names: ReadonlySet<string>) => void): Promise<void>;
  /** Ends the right of writers to write the streams of shards, except those with unwritten events: no gap follows. */
  release(shards: ReadonlySet<number>, released: Released): Promise<void>;

  find(streams: readonly string[]): Promise<ReadonlyMap<string, StreamRow>>;
  /** The next rows of events of a stream after an index. */
  read(id: number, after: number, rows: number): Promise<readonly Pick<Batch, "first" | "data">[]>;
  /** The index of a stream's oldest event; `undefined` if none is stored. */
  oldest(id: number): Promise<number | undefined>;
  delete(stream: string): Promise<void>;
  /** Removes some of the events beyond the limits, the oldest first; true if there may be more. */
  remove(limits: EventLimits): Promise<boolean>;
  /** Joins the deltas of finished turns in some rows, and returns the rest. Absent if that costs more than it saves. */
  join?(stretches: readonly Stretch[]): Promise<readonly Stretch[]>;

  /** How often readers look for writes of other processes, in ms; `undefined` if there are none. */
  readonly pollMs: number | undefined;
  /** Whether another process may have written since the last call. */
  hasChanged(): boolean;
  /** The problem of the database, for `Engine.problem`. */
  problem?(): KitError | undefined;
  close(): void;
}

/** The shards of a database whose streams all have the same writer. */
export const onlyShard: ReadonlySet<number> = new Set([0]);

/** How often the log calls a database depends on the cost of a call. */
export interface EventPace {
  /** The pause between an append and its write. */
  readonly gatherMs: number;
  /** The pause after a failed write. */
  readonly retryMs: number;
  /** Rows that a reader holds at a time. */
  readonly readerRows: number;
  /** Written events that stay in memory for the readers of a stream, in addition to those of the last write. */
  readonly keptEvents: number;
  /** How often this process removes old events while it writes; `undefined` if it is asked to. */
  readonly removeMs: number | undefined;
}

export interface Asked {
  readonly name: string;
  /** Whether a missing stream is added. */
  readonly isNew: boolean;
}

export interface StreamRow {
  readonly id: number;
  /** The highest index; the removal of events does not change it. */
  readonly last: number;
  /** The highest index that can have been given: above `last` if another writer may have used indexes that are not stored. */
  readonly highest: number;
  readonly ended: boolean;
  /** The number of stored events. */
  readonly events: number;
}

/** A row after its claim; `last` is the highest index that can have been given before. */
export interface ClaimedRow extends Omit<StreamRow, "highest"> {
  readonly name: string;
  /** The writer that the row names from now on. */
  readonly writer: string;
}

/** The events of one stream in one write. */
export interface StreamWrite {
  readonly name: string;
  readonly id: number;
  readonly writer: string;
  readonly last: number;
  readonly ended: boolean;
  readonly batches: readonly Batch[];
}

export interface Released {
  readonly writers: ReadonlySet<string>;
  /** The streams with unwritten events. */
  readonly open: readonly string[];
}

export interface EventLimits {
  /** Events that were written before are removed. */
  readonly beforeMs: number;
  /** Events per stream. */
  readonly maxEvents: number;
  /** Bytes of all streams. */
  readonly maxBytes: number;
}

/** Rows of a stream that hold deltas of a finished turn. */
export interface Stretch {
  readonly id: number;
  readonly from: number;
  readonly to: number;
}
