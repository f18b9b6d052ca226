import { withDeadline } from "../base/abort.ts";
import { KitError } from "../base/kit-error.ts";
import { eventTypes } from "../protocol/enums.ts";
import type { EventType, KitEvent } from "../protocol/event.ts";
import { connectionLost } from "./to-kit-error.ts";

/** The items of a stream: events, and at the end its result or an error envelope, where it has one. */
export type StreamItem =
  | { readonly kind: "event"; readonly event: KitEvent }
  | { readonly kind: "result" | "failure"; readonly body: unknown };

/** The server asks to be asked from the beginning the next time: the instance was deleted. */
interface Reset {
  readonly kind: "reset";
}

/** The stream goes on after this event: it began where its reader could not know. */
interface Position {
  readonly kind: "position";
  readonly index: number;
}

/**
 * Reads the items of an answer as they come. Throws `unavailable` when the connection breaks, or is
 * silent for `idleTimeoutMs`: the server sends a comment every 15 s. A reader that leaves early closes it.
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
    // A connection that has broken has nothing left to cancel.
    reader.cancel().catch(() => undefined);
  }
}

function toItem({ id, event, data }: ServerSentEvent): StreamItem | Reset | Position {
  if (id === "") return { kind: "reset" };
  if (id !== undefined && data === "") return { kind: "position", index: Number(id) };
  const body = parse(data);
  if (id !== undefined && isEvent(body)) return { kind: "event", event: body };
  // An event that an agent calls `error` has an id; the end of a stream has none.
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

/** Whether this client knows the event: events of a newer server are skipped. The type checker holds the list to the schema of events. */
export function isKnownEvent(event: KitEvent): boolean {
  return known.has(event.type);
}

/** One event of a stream, as the wire gives it. */
export interface ServerSentEvent {
  /** Absent where the event itself names none; without data the reader is to take it for its position; empty, it is to forget that. */
  readonly id?: string;
  /** `message` where it names none. */
  readonly event: string;
  readonly data: string;
}

export interface SseParser {
  /** Takes the next piece of the text, cut anywhere; gives the events that it completes. */
  push(text: string): readonly ServerSentEvent[];
}

/** In UTF-16 units: an event above this is not an event of kit. */
const maxEventLength = 32_000_000;

/**
 * Parses `text/event-stream`. Linear in the length of the text, however it is cut; an event that the
 * stream does not complete is dropped, and so is `retry`, since the client has a policy of its own.
 * Throws `unavailable` for an event without end.
 *
 * @see https://html.spec.whatwg.org/multipage/server-sent-events.html#event-stream-interpretation
 */
export function createSseParser(): SseParser {
  let started = false;
  // A CR ended the text before this one: a LF that follows belongs to it.
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
      // An id alone is a position, or the end of all positions.
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
      if (length > maxEventLength) throw endless();
      return events;
    },
  };
}

function endless(): KitError {
  return new KitError({ code: "unavailable", message: "The stream has an event without end." });
}
