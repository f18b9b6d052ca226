import type { KitEvent } from "../../protocol/event.ts";
import type { EventHub } from "./emitter.ts";

/** Past this many unread events, neighbouring deltas of one turn are joined. */
const joinBeyond = 1_000;

export interface EventStream {
  /** Several readers share what is unread: each event goes to one of them. */
  iterate(): AsyncIterator<KitEvent>;
  /** No more events come; readers get what is left. */
  end(): void;
}

/**
 * Collects the events of one operation and of the tasks below it, for a reader in its own time. A
 * slow reader delays nobody: deltas it has not read are joined, so that what waits stays small.
 */
export function createEventStream(hub: EventHub, operationId: string): EventStream {
  const unread: KitEvent[] = [];
  let next = 0;
  const family = new Set([operationId]);
  let waiting: (() => void)[] = [];
  let ended = false;
  const wake = (): void => {
    const all = waiting;
    if (all.length === 0) return;
    waiting = [];
    for (const go of all) go();
  };
  const unsubscribe = hub.subscribe((event) => {
    if (!family.has(event.operation_id)) {
      if (event.parent_operation_id === undefined || !family.has(event.parent_operation_id)) return;
      family.add(event.operation_id);
    }
    if (unread.length - next < joinBeyond || !joinDelta(unread, event)) unread.push(event);
    wake();
  });
  const end = (): void => {
    ended = true;
    unsubscribe();
    wake();
  };
  return {
    end,
    iterate: () => ({
      async next() {
        for (;;) {
          const event = unread[next];
          if (event !== undefined) {
            next += 1;
            if (next > joinBeyond) {
              unread.splice(0, next);
              next = 0;
            }
            return { done: false, value: event };
          }
          if (ended) return { done: true, value: undefined };
          await new Promise<void>((resolve) => waiting.push(resolve));
        }
      },
      async return() {
        unsubscribe();
        return { done: true, value: undefined };
      },
    }),
  };
}

function joinDelta(unread: KitEvent[], event: KitEvent): boolean {
  const last = unread.at(-1);
  if (event.type !== "text_delta" && event.type !== "reasoning_delta") return false;
  if (last === undefined || last.type !== event.type || last.turn_id !== event.turn_id) return false;
  unread[unread.length - 1] = { ...event, text: last.text + event.text };
  return true;
}
