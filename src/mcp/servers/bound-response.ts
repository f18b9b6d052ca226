import { setImmediate } from "node:timers/promises";
import { limits } from "../limits.ts";
import { createFloodGate } from "./flood-gate.ts";

const tooLong = `It sent a message of more than ${limits.messageBytes / 1_048_576} MB.`;

/** The error of a body that is too long. */
export class TooLongError extends Error {}

export function isEventStream(response: Response): boolean {
  return /^\s*text\/event-stream\s*(;|$)/i.test(response.headers.get("content-type") ?? "");
}

/** Small pieces read per turn of the event loop. */
const piecesPerTurn = 256;

/**
 * Bounds a response: reading fails if the body, or one event of a stream, is too long, or if a stream floods. A stream
 * may last for ever. Calls `onExcess` first.
 *
 * Small pieces are passed on together, those of a stream at the end of an event. So a server that sends single bytes
 * costs its readers no more than any other.
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
  const buffer = new Uint8Array(limits.reads.bytes);
  let [heldLength, count] = [0, 0];
  const take = (): Uint8Array => {
    const chunk = buffer.slice(0, heldLength);
    heldLength = 0;
    return chunk;
  };
  for (let part = await source.read(); !part.done; part = await source.read()) {
    for (let start = 0; start < part.value.length; start += limits.reads.bytes) {
      count += 1;
      // Readers take pieces without waiting, so let other work run in between.
      if (start > 0 || count % piecesPerTurn === 0) await setImmediate();
      const piece = part.value.subarray(start, start + limits.reads.bytes);
      const { tooMuch, endsEvent } = whyTooMuch(piece);
      if (tooMuch !== undefined) {
        onExcess?.(tooMuch);
        source.cancel().catch(() => undefined);
        throw new TooLongError(tooMuch);
      }
      if (heldLength + piece.length > buffer.length) yield take();
      buffer.set(piece, heldLength);
      heldLength += piece.length;
      if (endsEvent || heldLength === buffer.length) yield take();
    }
  }
  if (heldLength > 0) yield take();
}

/** Checks each piece of a body: why it exceeds a limit, and whether an event ends in it. */
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

/** Counts a piece of a stream: its events, by the cost of reading it, and its bytes after the last end of an event. */
type EventCounter = (piece: Uint8Array) => {
  readonly events: number;
  readonly afterEvent: number | undefined;
};

/** A line ends with LF, CR or both; an empty line ends an event. */
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
    // Blank lines and comments cost little; an event has about four lines.
    return { events: Math.max(events, lines / 4), afterEvent };
  };
}
