import { setImmediate } from "node:timers/promises";
import { createFloodGate } from "./flood-gate.ts";
import { limits } from "./limits.ts";

/** What a piece of a body counts at least: one that comes byte by byte costs more memory than its bytes. */
const minPieceBytes = 256;

const tooLong = `It sent a message of more than ${limits.messageBytes / 1_048_576} MB.`;

/** Thrown into the reader of a body that is too long; the message says what it is. */
export class TooLongError extends Error {}

/** Whether an answer is a stream of events. */
export function isEventStream(response: Response): boolean {
  return /^\s*text\/event-stream\s*(;|$)/i.test(response.headers.get("content-type") ?? "");
}

/**
 * An answer whose body ends in an error when it is too long: a body as a whole, or one event of a stream of
 * events. A stream may go on for ever, but not as a flood. `onExcess` hears of it first.
 */
export function boundResponse(response: Response, onExcess?: (what: string) => void): Response {
  if (response.body === null) return response;
  return new Response(response.body.pipeThrough(createBound(isEventStream(response), onExcess)), {
    status: response.status,
    statusText: response.statusText,
    headers: response.headers,
  });
}

function createBound(
  isStream: boolean,
  onExcess?: (what: string) => void,
): TransformStream<Uint8Array, Uint8Array> {
  const gate = createFloodGate(limits.flood);
  const counter = createEventCounter();
  let length = 0;
  return new TransformStream({
    async transform(chunk, controller) {
      for (let start = 0; start < chunk.length; start += limits.reads.bytes) {
        // The SDK reads a piece at once: others have their turn between two of them.
        if (start > 0) await setImmediate();
        const piece = chunk.subarray(start, start + limits.reads.bytes);
        const { events, afterEvent } = isStream ? counter(piece) : { events: 0, afterEvent: undefined };
        length = afterEvent ?? length + Math.max(piece.length, minPieceBytes);
        const isFlood = isStream && !gate.take(piece.length, Math.max(1, events));
        if (isFlood || length > limits.messageBytes) {
          const what = isFlood ? "It flooded a stream of events." : tooLong;
          onExcess?.(what);
          controller.error(new TooLongError(what));
          return;
        }
        controller.enqueue(piece);
      }
    },
  });
}

/** Of a piece of a stream: how many events it costs to read, and its bytes after the last event that ends in it. */
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
