import { isStoreUnavailable } from "../../../protocol/error-code.ts";
import type { KitEvent } from "../../../protocol/event.ts";
import type { EventSubscription } from "../../event-log-contract.ts";
import { type LiveStream, positionAfter } from "./live-stream.ts";

/** The next events of a stream. */
export interface EventPage {
  readonly events: readonly KitEvent[];
  /** Whether the stream ends after the events. */
  readonly isEnded: boolean;
  /** The id of the stream's row; `undefined` if it has none. */
  readonly id: number | undefined;
}

/** The access of a reader to its stream. */
export interface ReadableStream {
  /** The stream in memory, if this process writes it. */
  live(): LiveStream | undefined;
  page(after: number): Promise<EventPage>;
  onEnd(reader: EventReader): void;
}

const ended: IteratorResult<KitEvent> = { done: true, value: undefined };

/** Reads a stream on demand. It holds only its position and the rest of one page. */
export class EventReader implements AsyncIterator<KitEvent> {
  readonly #stream: ReadableStream;
  readonly #signal: AbortSignal | undefined;
  #cursor: number;
  #page: readonly KitEvent[] = [];
  #position = 0;
  /** The id of the stream's row: a new stream with the same name has another id. */
  #id: number | undefined;
  #waiting: PromiseWithResolvers<IteratorResult<KitEvent>> | undefined;
  #isReading = false;
  /** Whether the stream was changed while a page was read. */
  #isStale = false;
  /** Whether the stream was read: from then on, an outage of the database does not end the reader. */
  #hasRead = false;
  #isDone = false;
  #listens = false;

  constructor(stream: ReadableStream, { after = 0, id, signal }: EventSubscription) {
    this.#stream = stream;
    this.#cursor = after;
    this.#id = id === undefined ? undefined : Number(id);
    this.#signal = signal;
  }

  next(): Promise<IteratorResult<KitEvent>> {
    if (this.#waiting !== undefined) return this.#waiting.promise.then(() => this.next());
    const ready = this.#ready();
    if (ready !== undefined) return Promise.resolve(ready);
    const waiting = Promise.withResolvers<IteratorResult<KitEvent>>();
    this.#waiting = waiting;
    if (!this.#listens) this.#signal?.addEventListener("abort", this.wake, { once: true });
    this.#listens = true;
    if (!this.#isLive()) void this.#read();
    return waiting.promise;
  }

  return(): Promise<IteratorResult<KitEvent>> {
    return Promise.resolve(this.finish());
  }

  /** Makes a waiting reader look for new events. */
  readonly wake = (): void => {
    if (this.#waiting === undefined) return;
    this.#isStale = true;
    if (!this.#isReading && !this.#answer() && !this.#isLive()) void this.#read();
  };

  finish(): IteratorResult<KitEvent> {
    if (this.#isDone) return ended;
    this.#isDone = true;
    this.#page = [];
    if (this.#listens) this.#signal?.removeEventListener("abort", this.wake);
    this.#stream.onEnd(this);
    this.#answer();
    return ended;
  }

  /** Answers the waiting call of `next`, if there is an event or the stream has ended. */
  #answer(): boolean {
    const ready = this.#ready();
    if (ready === undefined) return false;
    const waiting = this.#waiting;
    this.#waiting = undefined;
    waiting?.resolve(ready);
    return true;
  }

  /** The next event, or the end, if it is in memory. */
  #ready(): IteratorResult<KitEvent> | undefined {
    if (this.#isDone) return ended;
    if (this.#signal?.aborted === true) return this.finish();
    const stored = this.#page[this.#position];
    if (stored !== undefined) {
      this.#position += 1;
      if (this.#position === this.#page.length) this.#page = [];
      return this.#deliver(stored);
    }
    const live = this.#newest();
    if (live === undefined) return undefined;
    if (live.id !== this.#id) return this.finish();
    const event = live.tail[positionAfter(live.tail, this.#cursor)];
    if (event !== undefined) return this.#deliver(event);
    return live.ended ? this.finish() : undefined;
  }

  #deliver(event: KitEvent): IteratorResult<KitEvent> {
    this.#cursor = event.index;
    return { done: false, value: event };
  }

  /** The stream in memory, if it has all events that the reader has not read. */
  #newest(): LiveStream | undefined {
    const live = this.#stream.live();
    if (live === undefined || this.#cursor < live.floor) return undefined;
    this.#id ??= live.id;
    return live;
  }

  #isLive(): boolean {
    return this.#newest() !== undefined;
  }

  /** Reads the next page, and answers the waiting call of `next`. */
  async #read(): Promise<void> {
    this.#isReading = true;
    try {
      do {
        this.#isStale = false;
        const { events, isEnded, id } = await this.#stream.page(this.#cursor);
        this.#hasRead = true;
        this.#id ??= id;
        if (id !== this.#id || (events.length === 0 && isEnded)) this.finish();
        if (this.#isDone) return;
        this.#page = events;
        this.#position = 0;
      } while (!this.#answer() && this.#isStale && !this.#isLive());
    } catch (error) {
      if (this.#hasRead && isStoreUnavailable(error)) return;
      const waiting = this.#waiting;
      this.#waiting = undefined;
      this.finish();
      waiting?.reject(error);
    } finally {
      this.#isReading = false;
    }
  }
}
