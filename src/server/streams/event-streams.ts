import { KitError } from "../../base/kit-error.ts";
import type { Principal } from "../../protocol/access.ts";
import type { KitEvent } from "../../protocol/event.ts";
import { type DeltaEvent, EventBuffer, toDelta } from "../../protocol/event-buffer.ts";
import type { ConnectionSlot, ConnectionSlots } from "../access/connection-slots.ts";
import { eventStreamReply } from "../reply.ts";

export interface EventStreamsOptions {
  /** A stream that says nothing for this long says that it lives. */
  readonly heartbeatMs: number;
  /** After so long a stream that its reader can take up again ends; undefined: it goes on. */
  readonly streamMs?: number | undefined;
  /** The places of the streams that may be open at once. */
  readonly slots: ConnectionSlots;
}

export interface StreamOptions {
  /** The place from `reserve`; the stream releases it when it ends. */
  readonly place: ConnectionSlot;
  /** Whether the server may end it when it closes: for streams that their reader can take up again. */
  readonly resumable: boolean;
  /** Whether it ends after `streamMs`, because its reader gets the rest with another request; default `resumable`. */
  readonly ends?: boolean | undefined;
  /** Called once, when the stream has ended, however. */
  readonly onEnd?: () => void;
  /** The last chunk of a stream whose source has thrown. */
  readonly toLastChunk: (error: unknown) => string;
}

/** The streams of events that a server has open. */
export interface EventStreams {
  /**
   * Takes a place for a stream, before work is begun for it. Throws `unavailable` when too many are open, or the server
   * closes, and `too_many_requests` when the principal has its share of them. Whoever opens no stream with it gives it back.
   */
  reserve(principal: Principal | undefined): ConnectionSlot;
  /**
   * A reply of server-sent events. The source is asked for the next chunk only when the client has read
   * what came before. Throws `unavailable` when the server closes.
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

export function createEventStreams({ heartbeatMs, streamMs, slots }: EventStreamsOptions): EventStreams {
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
      let limit: NodeJS.Timeout | undefined;
      const { body, stream } = createStream(source, {
        ...options,
        onEnd: () => {
          clearTimeout(limit);
          remove(stream);
          options.place.release();
          options.onEnd?.();
        },
      });
      add(stream);
      if (streamMs !== undefined && (options.ends ?? options.resumable))
        limit = setTimeout(stream.end, streamMs).unref();
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

/** Past this many unread events, neighbouring deltas of one turn are joined. */
const joinBeyond = 64;
/** The size of an event's common fields on the wire, about. */
const deltaOverhead = 350;

/** An unread event as its frame; a delta is encoded only when it is sent, because it may be joined with others. */
export type FrameItem = string | DeltaEvent;

export function toFrameItem(event: KitEvent, encode: (event: KitEvent) => string): FrameItem {
  return toDelta(event) ?? encode(event);
}

/** Creates a buffer for the events of a prompt that wait until its client has read those before. */
export function createFrameBuffer(limit: {
  /** How much may wait unread, in characters. */
  readonly maxLength: number;
  /** Called once, when more would wait than may; the client gets nothing more then. */
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
 * An event of a stream of server-sent events. JSON escapes every line break, so that no text of an
 * event can end its `data` field.
 *
 * @see https://html.spec.whatwg.org/multipage/server-sent-events.html
 */
export function encodeEvent(event: KitEvent): string {
  return `id: ${event.index}\nevent: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`;
}

/** The last event of a stream that has a result: it has no id, since nothing comes after it. */
export function encodeOutcome(type: "result" | "error", body: unknown): string {
  return `event: ${type}\ndata: ${JSON.stringify(body)}\n\n`;
}

/** Has readers forget how far they have come: a browser then sends no `Last-Event-ID` when it connects again. */
export const positionReset = "id:\n\n";

/** Has readers remember how far they have come, and nothing else. */
export function encodePosition(index: number): string {
  return `id: ${index}\n\n`;
}

/** A line that readers skip: says that the connection lives, or why it ends. */
function encodeComment(text: string): string {
  return `: ${text}\n\n`;
}

/** Whether a client would rather have a stream of events. */
export function acceptsEvents(accept: string): boolean {
  return accept
    .split(",")
    .some(
      (range) =>
        /^\s*text\/event-stream\s*(?:;|$)/i.test(range) && !/;\s*q=0(?:\.0*)?\s*(?:;|$)/i.test(range),
    );
}
