import { KitError } from "../../base/kit-error.ts";
import type { Principal } from "../../protocol/access.ts";
import type { KitEvent } from "../../protocol/event.ts";
import { type DeltaEvent, EventBuffer } from "../../protocol/event-buffer.ts";
import type { ConnectionSlot, ConnectionSlots } from "../access/connection-slots.ts";
import { eventStreamHeaders } from "../reply.ts";

export interface EventStreamsOptions {
  /** An idle stream sends a heartbeat after this time. */
  readonly heartbeatMs: number;
  /** The server ends a stream that its reader can resume after this time; undefined: no limit. */
  readonly streamMs?: number | undefined;
  /** Limits the streams that are open at once. */
  readonly slots: ConnectionSlots;
}

export interface StreamOptions {
  /** The slot from `reserve`; the stream releases it when it ends. */
  readonly slot: ConnectionSlot;
  /** Whether the reader can resume the stream: the server ends such a stream when it closes. */
  readonly resumable: boolean;
  /** Whether the stream ends after `streamMs`, because its reader can request the rest; default `resumable`. */
  readonly ends?: boolean | undefined;
  /**
   * Breaks the connection where the server ends the stream early, for clients that take a clean end for the end of the work.
   * Returns false if the request has no connection of its own.
   */
  readonly breakOff?: (() => boolean) | undefined;
  /** Called once when the stream has ended, also after an error. */
  readonly onEnd?: () => void;
  /** Returns the last chunk of a stream whose source has thrown; undefined breaks the connection. */
  readonly toLastChunk: (error: unknown) => string | undefined;
}

/** The open event streams of a server. */
export interface EventStreams {
  /**
   * Reserves a slot for a stream before its work starts. Throws `unavailable` if too many streams are open or the server
   * is closing, and `too_many_requests` if the principal already uses its share. The caller releases the slot if it opens
   * no stream.
   */
  reserve(principal: Principal | undefined): ConnectionSlot;
  /**
   * Creates a reply of server-sent events. The stream requests the next chunk from the source only after the client has
   * read the chunks before. Throws `unavailable` if the server is closing.
   */
  open(source: AsyncIterable<string>, options: StreamOptions): Response;
  /** Ends the resumable streams with a comment. */
  close(): void;
}

interface OpenStream {
  /** Sends a comment if the client has read everything and nothing was sent since the last heartbeat. */
  beat(): void;
  end(): void;
  readonly resumable: boolean;
  /** Ends the stream at its time limit. */
  limit?: NodeJS.Timeout;
}

const encoder = new TextEncoder();

export function createEventStreams({ heartbeatMs, streamMs, slots }: EventStreamsOptions): EventStreams {
  const streams = new Set<OpenStream>();
  let timer: NodeJS.Timeout | undefined;
  let closing = false;
  const remove = (stream: OpenStream): void => {
    clearTimeout(stream.limit);
    streams.delete(stream);
    if (streams.size > 0) return;
    clearInterval(timer);
    timer = undefined;
  };
  const checkOpen = (): void => {
    if (!closing) return;
    const meta = { retry_after_s: 5 };
    throw new KitError({ code: "unavailable", message: "The server is closing.", meta });
  };
  return {
    reserve(principal) {
      checkOpen();
      return slots.take(principal?.id);
    },
    open(source, options) {
      checkOpen();
      const { body, stream } = createStream(source, options, remove);
      streams.add(stream);
      // One timer serves all streams, so that a thousand idle streams cause one wake-up.
      timer ??= setInterval(() => {
        for (const each of streams) each.beat();
      }, heartbeatMs).unref();
      if (streamMs !== undefined && (options.ends ?? options.resumable))
        stream.limit = setTimeout(stream.end, streamMs).unref();
      return new Response(body, { headers: eventStreamHeaders });
    },
    close() {
      closing = true;
      for (const stream of [...streams]) if (stream.resumable) stream.end();
    },
  };
}

function createStream(
  source: AsyncIterable<string>,
  { slot, resumable, breakOff, onEnd, toLastChunk }: StreamOptions,
  remove: (stream: OpenStream) => void,
): { readonly body: ReadableStream<Uint8Array>; readonly stream: OpenStream } {
  const chunks = source[Symbol.asyncIterator]();
  let controller: ReadableStreamDefaultController<Uint8Array>;
  let ended = false;
  // Set while the client waits for the next chunk.
  let hungry = false;
  let quiet = true;

  const finish = (): void => {
    ended = true;
    remove(stream);
    slot.release();
    onEnd?.();
  };
  const stop = (): void => {
    finish();
    // A source that waits for its next item ends when that item arrives.
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
      if (last === undefined) {
        if (breakOff?.() !== true) controller.error(error);
        return;
      }
      controller.enqueue(encoder.encode(last));
      controller.close();
    } finally {
      hungry = false;
    }
  };
  const body = new ReadableStream<Uint8Array>(
    {
      start(streamController) {
        controller = streamController;
      },
      pull,
      cancel() {
        if (!ended) stop();
      },
    },
    // A high-water mark of 0: the source produces nothing before the client reads.
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
      if (breakOff !== undefined) {
        if (!breakOff()) controller.error(new Error("The server ends the stream early."));
        return;
      }
      controller.enqueue(encoder.encode(encodeComment("closing")));
      controller.close();
    },
  };
  return { body, stream };
}

/** Beyond this many unread events, neighbouring deltas of one turn are joined. */
const joinBeyond = 64;
/** The approximate size of an event's common fields on the wire. */
const deltaOverhead = 350;

/** Encodes an event, except a delta: it is encoded when it is sent, because it can be joined with others before. */
export type FrameItem = string | DeltaEvent;

/**
 * Creates a buffer for the events of a prompt that its client has not read yet. Its callers push `toDelta(event)`, else the encoded
 * event.
 */
export function createFrameBuffer(limit: {
  /** The most unread characters. */
  readonly maxLength: number;
  /** Called once if the limit is exceeded; the client then gets no more events. */
  readonly onOverflow: () => void;
}): EventBuffer<FrameItem> {
  return new EventBuffer<FrameItem>({
    deltaOf: (item) => (typeof item === "string" ? undefined : item),
    ofDelta: (delta) => delta,
    joinBeyond,
    limit: {
      ...limit,
      lengthOf: (item) => (typeof item === "string" ? item.length : item.text.length + deltaOverhead),
    },
  });
}

/**
 * Encodes an event as a server-sent event. JSON escapes every line break, so that no text of an event can end its `data`
 * field.
 *
 * @see https://html.spec.whatwg.org/multipage/server-sent-events.html
 */
export function encodeEvent(event: KitEvent): string {
  return `id: ${event.index}\nevent: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`;
}

/** Encodes the last event of a stream, its result or error. It has no id, because no event follows. */
export function encodeOutcome(type: "result" | "error", body: unknown): string {
  return `event: ${type}\ndata: ${JSON.stringify(body)}\n\n`;
}

/** Resets the position of readers: a browser then sends no `Last-Event-ID` when it reconnects. */
export const positionReset = "id:\n\n";

/** Encodes a position without an event. */
export function encodePosition(index: number): string {
  return `id: ${index}\n\n`;
}

/** Encodes a comment, which readers skip: a heartbeat, or the reason of the end. */
function encodeComment(text: string): string {
  return `: ${text}\n\n`;
}

/** Whether a client prefers a stream of events. */
export function acceptsEvents(accept: string): boolean {
  for (const range of accept.split(","))
    if (/^\s*text\/event-stream\s*(?:;|$)/i.test(range))
      if (!/;\s*q=0(?:\.0*)?\s*(?:;|$)/i.test(range)) return true;
  return false;
}
