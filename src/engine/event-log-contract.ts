import type { EventType, KitEvent } from "../protocol/event.ts";

/**
 * Events per stream, in the order of their indexes, which only rise. `agentStream` and `runStream` return the names of
 * streams. An event can be read at once; it is on disk a moment later (at most 100 ms), or after `flush`. Events that a
 * process had not written when it was killed or lost its lease are lost, and their indexes are never used again.
 */
export interface EventLog {
  /** The index of the newest event; 0 for an empty stream. The next event must have a higher index. */
  last(stream: string): Promise<number>;
  /**
   * Announces that this process will append to a stream. `append` does the same on its own; announced earlier, the
   * stream's row is written together with those of other streams.
   */
  begin(stream: string): Promise<void>;
  /** Returns what a reader must know to continue a stream, without beginning it. */
  state(stream: string): Promise<StreamState>;
  /** Adds an event. Throws `lease_lost` once another process writes the stream, and `conflict` for an index not above the last. */
  append(stream: string, event: KitEvent): void;
  /** Resolves once all appended events are on disk. */
  flush(): Promise<void>;
  /** Events after an index, oldest first; `limit` 1 to 1,000, default 100. */
  read(stream: string, options?: EventReadOptions): Promise<readonly KitEvent[]>;
  /**
   * Yields the events after an index, then each new event, until the stream ends or the signal fires. A `gap` event
   * replaces events that retention has removed. A slow reader uses no more memory than a fast one: it reads the events
   * that it has missed from disk.
   */
  subscribe(stream: string, options?: EventSubscription): AsyncIterable<KitEvent>;
  /** Ends the stream: its readers finish after the last event. */
  end(stream: string): void;
  delete(stream: string): Promise<void>;
}

export interface StreamState {
  /** Differs from the id of a deleted stream with the same name. `undefined` before the stream has begun. */
  readonly id: string | undefined;
  /**
   * No event of the stream has had a higher index. Above `last` if the writer is not this process, or has lost its lease:
   * readers may have seen events that were not written.
   */
  readonly highest: number;
}

export interface EventReadOptions {
  readonly after?: number | undefined;
  readonly limit?: number | undefined;
  readonly types?: readonly EventType[] | undefined;
}

export interface EventSubscription {
  readonly after?: number | undefined;
  /** The id that the stream must have; the subscription of a stream with another id finishes at once. */
  readonly id?: string | undefined;
  readonly signal?: AbortSignal | undefined;
}
