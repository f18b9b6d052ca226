import { withDeadline } from "../base/abort.ts";
import { KitError } from "../base/kit-error.ts";
import { eventTypes } from "../protocol/enums.ts";
import type { EventType, KitEvent } from "../protocol/event.ts";
import { connectionLost } from "./to-kit-error.ts";

/** An item of a stream: an event, a position, or at the end the result or an error envelope. */
export type StreamItem =
  | { readonly kind: "event"; readonly event: KitEvent }
  | { readonly kind: "result" | "failure"; readonly body: unknown };

/** Resets the position: the instance was deleted, so the next request starts at the beginning. */
interface Reset {
  readonly kind: "reset";
}

/** The position after which the stream continues, if the reader cannot know it. */
interface Position {
  readonly kind: "position";
  readonly index: number;
}

/**
 * Yields the items of a reply as they arrive. Throws `unavailable` if the connection breaks or is silent for
 * `idleTimeoutMs`: the server sends a comment every 15 s. Leaving the loop early closes the connection.
 */
export async function* readStream(
  response: Response,
  idleTimeoutMs: number,
): AsyncGenerator<StreamItem | Reset | Position, void> {
  if (response.body === null) return;
  const reader = response.body.getReader();
  const decoder = new TextDecoder();
  const parser = createSseParser();
  try {
    for (;;) {
      const { done, value } = await withDeadline(reader.read(), {
        ms: idleTimeoutMs,
        onTimeout: () => new Error("The server says nothing."),
      }).catch((error: unknown) => {
        throw connectionLost(error);
      });
      if (done) return;
      for (const event of parser.push(decoder.decode(value, { stream: true }))) yield toItem(event);
    }
  } finally {
    // A broken connection cannot be cancelled.
    reader.cancel().catch(() => undefined);
  }
}

function toItem({ id, event, data }: ServerSentEvent): StreamItem | Reset | Position {
  if (id === "") return { kind: "reset" };
  if (id !== undefined && data === "") return { kind: "position", index: Number(id) };
  const body = parse(data);
  if (id !== undefined && isEvent(body)) return { kind: "event", event: body };
  // An agent's event named `error` has an id; the end of a stream has none.
  return { kind: event === "result" ? "result" : "failure", body };
}

function parse(data: string): unknown {
  try {
    return JSON.parse(data);
  } catch (error) {
    throw connectionLost(error);
  }
}

function isEvent(body: unknown): body is KitEvent {
  return (
    typeof body === "object" &&
    body !== null &&
    "index" in body &&
    typeof body.index === "number" &&
    "type" in body &&
    typeof body.type === "string"
  );
}

const known: ReadonlySet<EventType> = new Set(eventTypes);

/** Whether this client knows the event: it skips events of a newer server. The compiler compares the list with the schema of events. */
export function isKnownEvent(event: KitEvent): boolean {
  return known.has(event.type);
}

/** One server-sent event. */
export interface ServerSentEvent {
  /** Absent if the event has no id. Without data, the id is the new position of the reader; an empty one resets it. */
  readonly id?: string;
  /** `message` if the event has no type. */
  readonly event: string;
  readonly data: string;
}

export interface SseParser {
  /** Parses the next chunk of the text, which can be cut anywhere. Returns the events that it completes. */
  push(text: string): readonly ServerSentEvent[];
}

/** In UTF-16 units; events of kit are smaller. */
const maxEventLength = 32_000_000;

/**
 * Creates a parser of `text/event-stream`. It takes linear time for any chunks. It drops an incomplete event at the end,
 * and `retry`, because the client has its own retry policy. Throws `unavailable` for an event without end.
 *
 * @see https://html.spec.whatwg.org/multipage/server-sent-events.html#event-stream-interpretation
 */
export function createSseParser(): SseParser {
  let started = false;
  // The last chunk ended with CR: a LF at the start of this one belongs to it.
  let afterCr = false;
  let pending: string[] = [];
  let length = 0;
  let id: string | undefined;
  let event = "";
  let data: string[] = [];

  function takeField(name: string, value: string): void {
    if (name === "data") data.push(value);
    else if (name === "event") event = value;
    else if (name === "id" && !value.includes("\0")) id = value;
  }

  function takeLine(line: string, events: ServerSentEvent[]): void {
    if (line === "") {
      const idField = id === undefined ? {} : { id };
      // An event with only an id sets the position, or resets it.
      if (data.length > 0 || id === "" || (id !== undefined && event === ""))
        events.push({ ...idField, event: event || "message", data: data.join("\n") });
      id = undefined;
      event = "";
      data = [];
      length = 0;
      return;
    }
    const colon = line.indexOf(":");
    if (colon === 0) length -= line.length;
    else if (colon === -1) takeField(line, "");
    else takeField(line.slice(0, colon), line.slice(line[colon + 1] === " " ? colon + 2 : colon + 1));
  }

  return {
    push(text) {
      const events: ServerSentEvent[] = [];
      let start = 0;
      if (!started && text !== "") {
        started = true;
        if (text.startsWith("\uFEFF")) start = 1;
      }
      if (afterCr && text !== "") {
        afterCr = false;
        if (text.startsWith("\n")) start = 1;
      }
      const lineEnd = /\r\n?|\n/g;
      lineEnd.lastIndex = start;
      for (let match = lineEnd.exec(text); match !== null; match = lineEnd.exec(text)) {
        pending.push(text.slice(start, match.index));
        const line = pending.join("");
        pending = [];
        length += match.index - start;
        takeLine(line, events);
        start = lineEnd.lastIndex;
        afterCr = match[0] === "\r" && start === text.length;
      }
      if (start < text.length) {
        pending.push(text.slice(start));
        length += text.length - start;
      }
      if (length > maxEventLength)
        throw new KitError({ code: "unavailable", message: "The stream has an event without end." });
      return events;
    },
  };
}
