import type { KitEvent } from "../../protocol/event.ts";

/** Past this many unread events, neighbouring deltas of one turn are joined. */
const joinBeyond = 64;

export interface EventQueueOptions {
  /** How an event goes over the wire. */
  readonly encode: (event: KitEvent) => string;
  /** How much may wait unread, in characters. */
  readonly maxLength: number;
  /** Told once, when more would wait than may; nothing more is kept then. */
  readonly onOverflow: () => void;
}

/** What waits for a reader that takes its time: events as they were made, in their order. */
export interface EventQueue {
  push(event: KitEvent): void;
  /** Nothing more comes; the reader gets what is left. */
  end(): void;
  /** All that waits, encoded, as soon as there is something; undefined at the end. */
  next(): Promise<readonly string[] | undefined>;
}

type Waiting = { readonly text: string } | { readonly delta: Delta };
type Delta = Extract<KitEvent, { readonly text: string }>;

/**
 * Creates a queue between those who make events and one who sends them. A slow reader delays nobody
 * and holds little: deltas that it has not read are joined, and past `maxLength` it is given up.
 */
export function createEventQueue(options: EventQueueOptions): EventQueue {
  let waiting: Waiting[] = [];
  let length = 0;
  let ended = false;
  let wake: (() => void) | undefined;

  const add = (item: Waiting, added: number): void => {
    length += added;
    if (length > options.maxLength) {
      ended = true;
      waiting = [];
      options.onOverflow();
    } else {
      waiting.push(item);
    }
    wake?.();
  };
  const take = (): readonly string[] => {
    const taken = waiting;
    waiting = [];
    length = 0;
    return taken.map((item) => ("text" in item ? item.text : options.encode(item.delta)));
  };
  return {
    push(event) {
      if (ended) return;
      if (event.type !== "text_delta" && event.type !== "reasoning_delta") {
        const text = options.encode(event);
        return add({ text }, text.length);
      }
      const last = waiting.length < joinBeyond ? undefined : waiting.at(-1);
      const joined = last === undefined || !("delta" in last) ? undefined : joinDeltas(last.delta, event);
      if (joined !== undefined) waiting.pop();
      add({ delta: joined ?? event }, event.text.length + (joined === undefined ? deltaOverhead : 0));
    },
    end() {
      ended = true;
      wake?.();
    },
    async next() {
      while (waiting.length === 0) {
        if (ended) return undefined;
        await new Promise<void>((resolve) => {
          wake = resolve;
        });
        wake = undefined;
      }
      return take();
    },
  };
}

/** What the common fields of an event take on the wire, about. */
const deltaOverhead = 350;

function joinDeltas(earlier: Delta, later: Delta): Delta | undefined {
  if (earlier.type !== later.type || earlier.operation_id !== later.operation_id) return undefined;
  return earlier.turn_id === later.turn_id ? { ...later, text: earlier.text + later.text } : undefined;
}
