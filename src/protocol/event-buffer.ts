import type { KitEvent } from "./event.ts";

/** A part of the model's answer. */
export type DeltaEvent = Extract<
  KitEvent,
  { readonly type: "text_delta" | "reasoning_delta" | "tool_args_delta" }
>;

export interface EventBufferOptions<Item> {
  /** Returns the delta that an item carries; undefined for any other item. */
  readonly deltaOf: (item: Item) => DeltaEvent | undefined;
  readonly ofDelta: (delta: DeltaEvent) => Item;
  /** Beyond this many unread items, neighbouring deltas of one turn are joined; default 1,000. */
  readonly joinBeyond?: number | undefined;
  /** A limit for the unread items, in the unit of `lengthOf`. */
  readonly limit?:
    | {
        readonly maxLength: number;
        readonly lengthOf: (item: Item) => number;
        /** Called once if the limit is exceeded: the buffer has dropped its items and has ended. */
        readonly onOverflow: () => void;
      }
    | undefined;
}

/**
 * Unread events between a producer and its readers. A slow reader does not delay the producer and uses little memory:
 * the buffer joins unread deltas, and a limit ends the buffer. Several readers share the items: each item goes to one
 * of them.
 */
export class EventBuffer<Item> implements AsyncIterable<Item, undefined> {
  readonly #options: EventBufferOptions<Item>;
  #unread: Item[] = [];
  #next = 0;
  #length = 0;
  #end: { readonly error?: unknown } | undefined;
  /** Resolves for all readers that wait. */
  #news: PromiseWithResolvers<void> | undefined;

  constructor(options: EventBufferOptions<Item>) {
    this.#options = options;
  }

  /** Adds an item; does nothing after the buffer has ended. */
  push(item: Item): void {
    if (this.#end !== undefined) return;
    const { joinBeyond = 1_000, limit } = this.#options;
    const joined = this.#unread.length - this.#next < joinBeyond ? undefined : this.#join(item);
    if (joined === undefined) this.#unread.push(item);
    else this.#unread[this.#unread.length - 1] = joined;
    if (limit !== undefined) {
      // A joined delta only adds its text.
      this.#length +=
        joined === undefined ? limit.lengthOf(item) : (this.#options.deltaOf(item)?.text.length ?? 0);
      if (this.#length > limit.maxLength) {
        this.#unread = [];
        this.#next = 0;
        this.end();
        limit.onOverflow();
        return;
      }
    }
    this.#wake();
  }

  /** Ends the buffer: readers get the remaining items. */
  end(): void {
    this.#end ??= {};
    this.#wake();
  }

  /** Ends the buffer with an error, which readers get after the remaining items. */
  fail(error: unknown): void {
    this.#end ??= { error };
    this.#wake();
  }

  /** Resolves with all unread items once there is one; undefined at the end. */
  take(): Promise<readonly Item[] | undefined> {
    return this.#when(() => {
      const taken = this.#next === 0 ? this.#unread : this.#unread.slice(this.#next);
      this.#unread = [];
      this.#next = 0;
      this.#length = 0;
      return taken;
    });
  }

  [Symbol.asyncIterator](): AsyncIterator<Item, undefined> {
    return {
      next: async () => {
        const item = await this.#when(() => ({ value: this.#shift() }));
        return item === undefined ? { done: true, value: undefined } : { done: false, ...item };
      },
    };
  }

  /**
   * Returns the result of `read` once there is an unread item; undefined at the end. Throws the error with
   * which the buffer failed.
   */
  async #when<Value>(read: () => Value): Promise<Value | undefined> {
    for (;;) {
      if (this.#next < this.#unread.length) return read();
      if (this.#end !== undefined) {
        if ("error" in this.#end) throw this.#end.error;
        return undefined;
      }
      this.#news ??= Promise.withResolvers();
      await this.#news.promise;
    }
  }

  #shift(): Item {
    const item = this.#unread[this.#next] as Item;
    this.#next += 1;
    if (this.#next === this.#unread.length || this.#next > 1_000) {
      this.#unread.splice(0, this.#next);
      this.#next = 0;
    }
    return item;
  }

  #wake(): void {
    this.#news?.resolve();
    this.#news = undefined;
  }

  #join(item: Item): Item | undefined {
    const { deltaOf, ofDelta } = this.#options;
    const last = this.#unread.at(-1);
    const earlier = last === undefined ? undefined : deltaOf(last);
    const later = deltaOf(item);
    if (earlier === undefined || later === undefined || earlier.type !== later.type) return undefined;
    if (earlier.operation_id !== later.operation_id || earlier.turn_id !== later.turn_id) return undefined;
    if (callOf(earlier) !== callOf(later)) return undefined;
    const joined = { ...later, ...offsetOf(earlier), text: earlier.text + later.text };
    const partial_result = partialOf(later) ?? partialOf(earlier);
    return ofDelta(partial_result === undefined ? joined : ({ ...joined, partial_result } as DeltaEvent));
  }
}

function partialOf(delta: DeltaEvent): unknown {
  return delta.type === "text_delta" ? delta.partial_result : undefined;
}

function offsetOf(delta: DeltaEvent): { readonly offset?: number } {
  return delta.type === "tool_args_delta" ? { offset: delta.offset } : {};
}

function callOf(delta: DeltaEvent): string | undefined {
  return delta.type === "tool_args_delta" ? delta.tool_call_id : undefined;
}

/** Returns the event if it is a delta. */
export function toDelta(event: KitEvent): DeltaEvent | undefined {
  switch (event.type) {
    case "text_delta":
    case "reasoning_delta":
    case "tool_args_delta":
      return event;
    default:
      return undefined;
  }
}
