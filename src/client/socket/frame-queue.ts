import type { KitEvent } from "../../protocol/event.ts";
import type { StreamItem } from "../read-stream.ts";

/** Past this many unread items, neighbouring deltas of one turn are joined. */
const joinBeyond = 1_000;

/** What a WebSocket has brought for one request, until its reader takes it: a socket cannot be slowed down. */
export interface FrameQueue extends AsyncIterable<StreamItem> {
  push(item: StreamItem): void;
  /** Readers get what is left, then the error. */
  fail(error: unknown): void;
}

export function createFrameQueue(): FrameQueue {
  let unread: StreamItem[] = [];
  let failure: { readonly error: unknown } | undefined;
  let wake: (() => void) | undefined;
  return {
    push(item) {
      if (unread.length < joinBeyond || !joinDelta(unread, item)) unread.push(item);
      wake?.();
    },
    fail(error) {
      failure ??= { error };
      wake?.();
    },
    async *[Symbol.asyncIterator]() {
      for (;;) {
        const items = unread;
        unread = [];
        yield* items;
        if (unread.length > 0) continue;
        if (failure !== undefined) throw failure.error;
        await new Promise<void>((resolve) => {
          wake = resolve;
        });
        wake = undefined;
      }
    },
  };
}

function joinDelta(unread: StreamItem[], item: StreamItem): boolean {
  const last = unread.at(-1);
  if (last?.kind !== "event" || item.kind !== "event" || !isDelta(last.event) || !isDelta(item.event))
    return false;
  const { operation_id, turn_id, type, text } = last.event;
  const next = item.event;
  if (next.type !== type || next.operation_id !== operation_id || next.turn_id !== turn_id) return false;
  unread[unread.length - 1] = { kind: "event", event: { ...next, text: text + next.text } };
  return true;
}

function isDelta(event: KitEvent): event is Extract<KitEvent, { readonly text: string }> {
  return event.type === "text_delta" || event.type === "reasoning_delta";
}
