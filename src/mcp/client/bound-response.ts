import { createFloodGate } from "./flood-gate.ts";
import { limits } from "./limits.ts";

/** What a piece of a body counts at least: a body that comes byte by byte costs more than its bytes. */
const minChunkBytes = 256;

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
  let length = 0;
  let lineIsEmpty = true;
  return new TransformStream({
    transform(chunk, controller) {
      let lines = 0;
      for (let index = 0; isStream && index < chunk.length; index += 1) {
        const byte = chunk[index];
        if (byte === 10) lines += 1;
        // An empty line ends an event.
        if (byte === 10 && lineIsEmpty) length = -index;
        if (byte !== 13) lineIsEmpty = byte === 10;
      }
      length += Math.max(chunk.length, minChunkBytes);
      // An event has some four lines.
      const isFlood = isStream && !gate.take(chunk.length, lines / 4);
      if (isFlood || length > limits.messageBytes) {
        const what = isFlood ? "It flooded a stream of events." : tooLong;
        onExcess?.(what);
        controller.error(new TooLongError(what));
        return;
      }
      controller.enqueue(chunk);
    },
  });
}
