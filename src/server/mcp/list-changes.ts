import { InMemoryServerEventBus, type ServerEventBus } from "@modelcontextprotocol/server";

/** Milliseconds between two comparisons. */
const pollMs = 1_000;

const kinds = ["tools_list_changed", "prompts_list_changed"] as const;

/**
 * The notices that a list has changed, for the streams of `subscriptions/listen`. While a stream is open, the lists are compared each
 * second: a list is another object after each reload. A sender also hears of changes that it may not see: a notice has no content.
 */
export function createListChanges(
  read: () => { readonly [Kind in (typeof kinds)[number]]: readonly unknown[] },
): ServerEventBus {
  const bus = new InMemoryServerEventBus();
  let before = read();
  let timer: NodeJS.Timeout | undefined;
  const compare = (): void => {
    const now = read();
    for (const kind of kinds)
      if (now[kind].some((list, at) => list !== before[kind][at])) bus.publish({ kind });
    before = now;
  };
  return {
    publish: (event) => bus.publish(event),
    subscribe(listener) {
      if (timer === undefined) {
        before = read();
        timer = setInterval(compare, pollMs).unref();
      }
      const unsubscribe = bus.subscribe(listener);
      return () => {
        unsubscribe();
        if (bus.listenerCount > 0) return;
        clearInterval(timer);
        timer = undefined;
      };
    },
  };
}
