import { KitError } from "../../base/kit-error.ts";
import { eventStreamReply } from "../reply.ts";
import { encodeComment } from "./server-sent-events.ts";

export interface EventStreamsOptions {
  /** A stream that says nothing for this long says that it lives. */
  readonly heartbeatMs: number;
  /** How many streams may be open at once. */
  readonly maxStreams: number;
}

export interface StreamOptions {
  /** Whether the server may end it when it closes: for streams that their reader can take up again. */
  readonly resumable: boolean;
  /** Called once, when the stream has ended, however. */
  readonly onEnd?: () => void;
  /** The last chunk of a stream whose source has thrown. */
  readonly toLastChunk: (error: unknown) => string;
}

/** The streams of events that a server has open. */
export interface EventStreams {
  /** Throws `unavailable` when too many are open, or the server closes: before work is begun for another. */
  checkRoom(): void;
  /**
   * A reply of server-sent events. The source is asked for the next chunk only when the client has read
   * what came before. Throws what `checkRoom` throws.
   */
  open(source: AsyncIterable<string>, options: StreamOptions): Response;
  /** Ends the resumable ones with a comment. */
  close(): void;
}

interface OpenStream {
  /** Sends a comment when the client has read all and nothing was sent since the last beat. */
  beat(): void;
  end(): void;
  readonly resumable: boolean;
}

const encoder = new TextEncoder();

export function createEventStreams({ heartbeatMs, maxStreams }: EventStreamsOptions): EventStreams {
  const streams = new Set<OpenStream>();
  let timer: NodeJS.Timeout | undefined;
  let closing = false;
  // One timer for all: a thousand idle streams are one wake-up.
  const add = (stream: OpenStream): void => {
    streams.add(stream);
    timer ??= setInterval(() => {
      for (const open of streams) open.beat();
    }, heartbeatMs).unref();
  };
  const remove = (stream: OpenStream): void => {
    streams.delete(stream);
    if (streams.size > 0) return;
    clearInterval(timer);
    timer = undefined;
  };
  const checkRoom = (): void => {
    if (!closing && streams.size < maxStreams) return;
    throw new KitError({
      code: "unavailable",
      message: closing ? "The server is closing." : "Too many streams are open.",
      meta: { retry_after_s: 5 },
    });
  };
  return {
    checkRoom,
    open(source, options) {
      checkRoom();
      const { body, stream } = createStream(source, {
        ...options,
        onEnd: () => {
          remove(stream);
          options.onEnd?.();
        },
      });
      add(stream);
      return eventStreamReply(body);
    },
    close() {
      closing = true;
      for (const stream of [...streams]) if (stream.resumable) stream.end();
    },
  };
}

function createStream(
  source: AsyncIterable<string>,
  { resumable, onEnd, toLastChunk }: StreamOptions,
): { readonly body: ReadableStream<Uint8Array>; readonly stream: OpenStream } {
  const chunks = source[Symbol.asyncIterator]();
  let controller: ReadableStreamDefaultController<Uint8Array>;
  let ended = false;
  // Set while the client waits for more.
  let hungry = false;
  let quiet = true;

  const finish = (): void => {
    ended = true;
    onEnd?.();
  };
  const stop = (): void => {
    finish();
    // A source may be in the middle of waiting for what comes next, and ends when that has come.
    chunks.return?.().catch(() => undefined);
  };
  const pull = async (): Promise<void> => {
    hungry = true;
    try {
      const next = await chunks.next();
      if (ended) return;
      if (next.done === true) {
        finish();
        controller.close();
        return;
      }
      quiet = false;
      controller.enqueue(encoder.encode(next.value));
    } catch (error) {
      if (ended) return;
      const last = toLastChunk(error);
      finish();
      controller.enqueue(encoder.encode(last));
      controller.close();
    } finally {
      hungry = false;
    }
  };
  const body = new ReadableStream<Uint8Array>(
    {
      start(own) {
        controller = own;
      },
      pull,
      cancel() {
        if (!ended) stop();
      },
    },
    // Nothing is made ahead of what the client reads.
    { highWaterMark: 0 },
  );
  const stream: OpenStream = {
    resumable,
    beat() {
      const hasReadAll = hungry && (controller.desiredSize ?? -1) >= 0;
      if (hasReadAll && quiet) controller.enqueue(encoder.encode(encodeComment("alive")));
      quiet = true;
    },
    end() {
      if (ended) return;
      stop();
      controller.enqueue(encoder.encode(encodeComment("closing")));
      controller.close();
    },
  };
  return { body, stream };
}
