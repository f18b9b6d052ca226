import { KitError } from "../base/kit-error.ts";

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
