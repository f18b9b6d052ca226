import { withDeadline } from "../base/abort.ts";
import { eventTypes } from "../protocol/enums.ts";
import type { EventType, KitEvent } from "../protocol/event.ts";
import { createSseParser, type ServerSentEvent } from "./sse-parser.ts";
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
