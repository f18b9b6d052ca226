import { createFloodGate } from "./flood-gate.ts";
import { limits } from "./limits.ts";

export type Fetch = typeof globalThis.fetch;

/** What a piece of a body counts at least: a body that comes byte by byte costs more than its bytes. */
const minChunkBytes = 256;

/** Thrown into the reader of a body that is too long. */
export class TooLongError extends Error {}

/**
 * A `fetch` whose answers end in an error when one is too long: a body as a whole, or one event of a
 * stream of events. A stream may go on for ever, but not as a flood.
 */
export function createBoundedFetch(base: Fetch = globalThis.fetch): Fetch {
  return async (input, init) => {
    const response = await base(input, init);
    if (response.body === null) return response;
    const isStream = response.headers.get("content-type")?.startsWith("text/event-stream") ?? false;
    return new Response(response.body.pipeThrough(createBound(isStream)), {
      status: response.status,
      statusText: response.statusText,
      headers: response.headers,
    });
  };
}

function createBound(isStream: boolean): TransformStream<Uint8Array, Uint8Array> {
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
      if (length > limits.messageBytes || (isStream && !gate.take(chunk.length, lines / 4))) {
        controller.error(new TooLongError(`A message of more than ${limits.messageBytes} bytes.`));
        return;
      }
      controller.enqueue(chunk);
    },
  });
}
