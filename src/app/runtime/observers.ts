import { AsyncLocalStorage } from "node:async_hooks";
import type { OperationOrigin, Origins } from "../../agents/agent-runtime.ts";
import type { EventListener } from "../../agents/events.ts";
import type { KitEvent } from "../../protocol/event.ts";
import { type Tracing, tracingOf } from "../../protocol/tracing.ts";

/** The listeners of a whole application. */
export interface Observers {
  /** Adds an observer. Returns a function that removes it. */
  add(observer: EventListener): () => void;
  publish(event: KitEvent): void;
  readonly all: ReadonlySet<EventListener>;
  /** The tracing of the first observer that has one. */
  readonly tracing: Tracing | undefined;
}

/** Creates the observers. An error of one, or the rejection of its promise, goes to `onError`; the others still get the event. */
export function createObservers(onError?: (error: unknown) => void): Observers {
  const observers = new Set<EventListener>();
  const report = (error: unknown): void => onError?.(error);
  return {
    all: observers,
    get tracing() {
      return tracingOf(observers);
    },
    add(observer) {
      // A new function for each call, so that the same observer can be added twice.
      const forward: EventListener = (event) => observer(event);
      const tracing = tracingOf([observer]);
      const entry = tracing === undefined ? forward : Object.assign(forward, { tracing });
      observers.add(entry);
      return () => observers.delete(entry);
    },
    publish(event) {
      for (const observer of observers) {
        try {
          const result = observer(event);
          if (result instanceof Promise) result.catch(report);
        } catch (error) {
          report(error);
        }
      }
    },
  };
}

const storage = new AsyncLocalStorage<OperationOrigin>();

/** The trace position of running work. The process has one, because work of one application can call another. */
export const origins: Origins = {
  current: () => storage.getStore(),
  run: (origin, work) => storage.run(origin, work),
};
