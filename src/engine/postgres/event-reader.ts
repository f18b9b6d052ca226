import type { Clock } from "../../base/clock.ts";
import { isStoreUnavailable } from "../../protocol/error-code.ts";
import type { KitEvent } from "../../protocol/event.ts";
import type { EventSubscription } from "../event-log-contract.ts";

/** The next events of a stream. */
export interface EventPage {
  readonly events: readonly KitEvent[];
  /** Whether the stream has ended. */
  readonly isEnded: boolean;
  /** The id of the stream's row; `undefined` if it has none. */
  readonly id: string | undefined;
}

export interface EventReaderOptions extends EventSubscription {
  readonly stream: string;
  readonly clock: Clock;
  /** Fires when the log closes. */
  readonly closing: AbortSignal;
  onEnd(): void;
}

/** How often a reader polls for events without news. */
const pollMs = 250;

const ended: IteratorResult<KitEvent> = { done: true, value: undefined };

/** Reads a stream on demand. It holds only its position and the rest of one page. */
export class EventReader implements AsyncIterator<KitEvent> {
  /** Whether the stream was read: from then on, an outage of the database does not end the reader. */
  #hasRead = false;
  readonly #log: { page(stream: string, after: number): Promise<EventPage> };
  readonly #options: EventReaderOptions;
  #cursor: number;
  #page: readonly KitEvent[] = [];
  #position = 0;
  /** The id of the stream's row: a new stream with the same name has another id. */
  #id: string | undefined;
  #isDone = false;
  #wake = Promise.withResolvers<void>();
  #turn: Promise<unknown> = Promise.resolve();

  constructor(log: { page(stream: string, after: number): Promise<EventPage> }, options: EventReaderOptions) {
    this.#log = log;
    this.#options = options;
    this.#cursor = options.after ?? 0;
    this.#id = options.id;
    options.signal?.addEventListener("abort", () => this.wake(), { once: true });
  }

  next(): Promise<IteratorResult<KitEvent>> {
    const next = this.#turn.then(() => this.#next());
    this.#turn = next.catch(() => undefined);
    return next;
  }

  return(): Promise<IteratorResult<KitEvent>> {
    this.finish();
    return Promise.resolve(ended);
  }

  /** Makes a waiting reader look for new events. */
  wake(): void {
    this.#wake.resolve();
  }

  finish(): IteratorResult<KitEvent> {
    if (!this.#isDone) this.#options.onEnd();
    this.#isDone = true;
    this.#page = [];
    this.wake();
    return ended;
  }

  async #next(): Promise<IteratorResult<KitEvent>> {
    const { stream, signal, closing } = this.#options;
    for (;;) {
      if (this.#isDone || closing.aborted || signal?.aborted === true) return this.finish();
      const event = this.#page[this.#position];
      if (event !== undefined) {
        this.#position += 1;
        this.#cursor = event.index;
        return { done: false, value: event };
      }
      // Created before the page is read, so that an event that arrives meanwhile wakes the reader.
      this.#wake = Promise.withResolvers<void>();
      const page = await this.#read(stream);
      if (page === undefined) return this.finish();
      this.#page = page.events;
      this.#position = 0;
      if (page.events.length > 0) continue;
      if (page.isEnded) return this.finish();
      await this.#wait();
    }
  }

  /** The next page; `undefined` if the stream was deleted. */
  async #read(stream: string): Promise<EventPage | undefined> {
    try {
      const page = await this.#log.page(stream, this.#cursor);
      this.#id ??= page.id;
      if (page.id !== this.#id) return undefined;
      this.#hasRead = true;
      return page;
    } catch (error) {
      if (this.#hasRead && isStoreUnavailable(error)) return { events: [], isEnded: false, id: this.#id };
      this.finish();
      throw error;
    }
  }

  async #wait(): Promise<void> {
    const over = new AbortController();
    const timer = this.#options.clock.sleep(pollMs, over.signal).catch(() => undefined);
    await Promise.race([this.#wake.promise, timer]);
    over.abort();
  }
}
