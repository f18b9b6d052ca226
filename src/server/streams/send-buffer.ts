import type { KitEvent } from "../../protocol/event.ts";
import { type DeltaEvent, EventBuffer, toDelta } from "../../protocol/event-buffer.ts";

/** Past this many unread events, neighbouring deltas of one turn are joined. */
const joinBeyond = 64;
/** The size of an event's common fields on the wire, about. */
const deltaOverhead = 350;

export interface SendBufferOptions {
  /** How an event goes over the wire. */
  readonly encode: (event: KitEvent) => string;
  /** How much may wait unread, in characters. */
  readonly maxLength: number;
  /** Called once, when more would wait than may; the client gets nothing more then. */
  readonly onOverflow: () => void;
}

/** Events of a prompt that wait until its client has read those before. */
export interface SendBuffer {
  push(event: KitEvent): void;
  end(): void;
  /** All that waits, encoded, as soon as there is something; undefined at the end. */
  next(): Promise<readonly string[] | undefined>;
}

export function createSendBuffer({ encode, maxLength, onOverflow }: SendBufferOptions): SendBuffer {
  // Deltas are encoded when they are sent, because they may be joined; other events once, here.
  const buffer = new EventBuffer<string | DeltaEvent>({
    deltaOf: (item) => (typeof item === "string" ? undefined : item),
    ofDelta: (delta) => delta,
    joinBeyond,
    limit: {
      maxLength,
      lengthOf: (item) => (typeof item === "string" ? item.length : item.text.length + deltaOverhead),
      onOverflow,
    },
  });
  return {
    push: (event) => buffer.push(toDelta(event) ?? encode(event)),
    end: () => buffer.end(),
    async next() {
      const items = await buffer.take();
      return items?.map((item) => (typeof item === "string" ? item : encode(item)));
    },
  };
}
