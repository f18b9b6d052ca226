import type { KitEvent } from "../../protocol/event.ts";

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
export function encodeComment(text: string): string {
  return `: ${text}\n\n`;
}

/** Whether a client would rather have a stream of events. */
export function wantsEvents(accept: string): boolean {
  return accept
    .split(",")
    .some(
      (range) =>
        /^\s*text\/event-stream\s*(?:;|$)/i.test(range) && !/;\s*q=0(?:\.0*)?\s*(?:;|$)/i.test(range),
    );
}
