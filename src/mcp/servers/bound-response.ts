import { setImmediate } from "node:timers/promises";
import { limits } from "../limits.ts";
import { createFloodGate } from "./flood-gate.ts";

const tooLong = `It sent a message of more than ${limits.messageBytes / 1_048_576} MB.`;

/** Thrown into the reader of a body that is too long; the message says what it is. */
export class TooLongError extends Error {}

/** Whether an answer is a stream of events. */
export function isEventStream(response: Response): boolean {
  return /^\s*text\/event-stream\s*(;|$)/i.test(response.headers.get("content-type") ?? "");
}

/** Small pieces that are read in one turn of the event loop. */
const piecesPerTurn = 256;

/**
 * An answer whose body ends in an error when it is too long: a body as a whole, or one event of a stream of
 * events. A stream may go on for ever, but not as a flood. `onExcess` hears of it first.
 *
 * Small pieces are handed on together: of a stream once an event ends, because a part of one is of no use. So a
 * server that sends byte by byte costs its readers no more than one that does not.
 */
export function boundResponse(response: Response, onExcess?: (what: string) => void): Response {
  if (response.body === null) return response;
  return new Response(boundBody(response.body, { isStream: isEventStream(response), onExcess }), {
    status: response.status,
    statusText: response.statusText,
    headers: response.headers,
  });
}

interface BoundOptions {
  readonly isStream: boolean;
  readonly onExcess: ((what: string) => void) | undefined;
}

function boundBody(body: ReadableStream<Uint8Array>, options: BoundOptions): ReadableStream<Uint8Array> {
  const source = body.getReader();
  const pieces = readPieces(source, options);
  return new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        const { value, done } = await pieces.next();
        if (done) controller.close();
        else controller.enqueue(value);
      },
      cancel: (reason) => source.cancel(reason),
    },
    { highWaterMark: 0 },
  );
}

async function* readPieces(
  source: ReadableStreamDefaultReader<Uint8Array>,
  { isStream, onExcess }: BoundOptions,
): AsyncGenerator<Uint8Array, void> {
  const whyTooMuch = createBound(isStream);
  const held = new Uint8Array(limits.reads.bytes);
  let [heldLength, count] = [0, 0];
  const take = (): Uint8Array => {
    const taken = held.slice(0, heldLength);
    heldLength = 0;
    return taken;
  };
  for (let part = await source.read(); !part.done; part = await source.read()) {
    for (let start = 0; start < part.value.length; start += limits.reads.bytes) {
      count += 1;
      // A reader takes a piece at once: others have their turn between two of them.
      if (start > 0 || count % piecesPerTurn === 0) await setImmediate();
      const piece = part.value.subarray(start, start + limits.reads.bytes);
      const { tooMuch, endsEvent } = whyTooMuch(piece);
      if (tooMuch !== undefined) {
        onExcess?.(tooMuch);
        source.cancel().catch(() => undefined);
        throw new TooLongError(tooMuch);
      }
      if (heldLength + piece.length > held.length) yield take();
      held.set(piece, heldLength);
      heldLength += piece.length;
      if (endsEvent || heldLength === held.length) yield take();
    }
  }
  if (heldLength > 0) yield take();
}

/** Judges each piece of a body: why it is one too many, and whether an event ends in it. */
function createBound(
  isStream: boolean,
): (piece: Uint8Array) => { readonly tooMuch: string | undefined; readonly endsEvent: boolean } {
  const gate = createFloodGate(limits.flood);
  const counter = createEventCounter();
  let length = 0;
  return (piece) => {
    const { events, afterEvent } = isStream ? counter(piece) : { events: 0, afterEvent: undefined };
    length = afterEvent ?? length + piece.length;
    const isFlood = isStream && !gate.take(piece.length, Math.max(1, events));
    const why = isFlood ? "It flooded a stream of events." : tooLong;
    return {
      tooMuch: isFlood || length > limits.messageBytes ? why : undefined,
      endsEvent: afterEvent !== undefined,
    };
  };
}

/** Counts a piece of a stream: the events that it costs to read, and its bytes after the last event that ends in it. */
type EventCounter = (piece: Uint8Array) => {
  readonly events: number;
  readonly afterEvent: number | undefined;
};

/** Counts the events of a stream. A line ends with LF, CR or both; an empty one ends an event. */
function createEventCounter(): EventCounter {
  let previous = 0;
  let lineIsEmpty = true;
  let eventIsEmpty = true;
  return (piece) => {
    let [lines, events] = [0, 0];
    let afterEvent: number | undefined;
    for (let index = 0; index < piece.length; index += 1) {
      const byte = piece[index] ?? 0;
      if (byte === 13 || (byte === 10 && previous !== 13)) {
        lines += 1;
        if (lineIsEmpty) {
          if (!eventIsEmpty) events += 1;
          eventIsEmpty = true;
          afterEvent = piece.length - index - 1;
        }
        lineIsEmpty = true;
      } else if (byte !== 10) {
        lineIsEmpty = false;
        eventIsEmpty = false;
      }
      previous = byte;
    }
    // Blank lines and comments cost next to nothing; an event has some four lines.
    return { events: Math.max(events, lines / 4), afterEvent };
  };
}
