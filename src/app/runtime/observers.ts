import { AsyncLocalStorage } from "node:async_hooks";
import type { OperationOrigin, Origins } from "../../agents/agent-runtime.ts";
import type { EventListener, EventObservers } from "../../agents/events.ts";
import type { AdmitRequest, Engine } from "../../engine/contract.ts";
import type { EventType, KitEvent } from "../../protocol/event.ts";
import { agentStream, runStream } from "../../protocol/session-name.ts";
import { type TraceContext, type Tracing, tracingOf } from "../../protocol/tracing.ts";

/** The listeners of a whole application. */
export interface Observers extends EventObservers {
  /** Adds an observer. Returns a function that removes it. */
  add(observer: EventListener): () => void;
  publish(event: KitEvent): void;
}

/** Creates the observers. An error of one, or the rejection of its promise, goes to `onError`; the others still get the event. */
export function createObservers(onError?: (error: unknown) => void): Observers {
  const observers = new Set<EventListener>();
  const report = (error: unknown): void => onError?.(error);
  const all: Observers & { tracing: Tracing | undefined } = {
    all: observers,
    tracing: undefined,
    add(observer) {
      // A new function for each call, so that the same observer can be added twice.
      const forward: EventListener = (event) => observer(event);
      const tracing = tracingOf([observer]);
      const entry = tracing === undefined ? forward : Object.assign(forward, { tracing });
      observers.add(entry);
      all.tracing ??= tracing;
      return () => {
        observers.delete(entry);
        all.tracing = tracingOf(observers);
      };
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
  return all;
}

/** The trace position of running work. The process has one, because work of one application can call another. */
export const origins: Origins = new AsyncLocalStorage<OperationOrigin>();

/** Connects the work of a service with the traces of its callers. */
export interface WorkTraces {
  /** Returns the trace position of the calling code, which the engine stores with the work. */
  ofCaller(): { readonly trace?: TraceContext };
  /** Continues the spans of an instance that another process started and did not end. */
  recallSession(request: Pick<AdmitRequest, "agent" | "instance_id">): Promise<void>;
  /** Continues the spans of a run that another process started and did not end. */
  recallRun(runId: string): Promise<void>;
}

/** How many of the latest events are read: interrupted work is near the end of its stream. */
const recalledEvents = 5_000;
const pageSize = 1_000;

const ofSpans: readonly EventType[] = [
  "run_start",
  "run_end",
  "step_start",
  "step_end",
  "operation_start",
  "operation",
  "task_start",
  "task_end",
];

export function createWorkTraces(
  observers: Pick<Observers, "tracing">,
  { events }: Pick<Engine, "events">,
): WorkTraces {
  async function recall(stream: string): Promise<void> {
    const { tracing } = observers;
    if (tracing === undefined) return;
    const begun = await events.read(stream, { limit: 1 });
    const spanEvents = begun.filter(({ type }) => type === "run_start");
    let after = Math.max(begun[0]?.index ?? 0, (await events.last(stream)) - recalledEvents);
    for (;;) {
      const page = await events.read(stream, { after, limit: pageSize, types: ofSpans });
      spanEvents.push(...page);
      after = page.at(-1)?.index ?? after;
      if (page.length < pageSize) break;
    }
    tracing.recall(spanEvents);
  }
  // An error in the trace does not stop the work.
  const quietly = (stream: string): Promise<void> => recall(stream).catch(() => undefined);
  return {
    ofCaller() {
      const { traceparent, tracestate } = origins.getStore() ?? observers.tracing?.active() ?? {};
      if (traceparent === undefined) return {};
      return { trace: tracestate === undefined ? { traceparent } : { traceparent, tracestate } };
    },
    recallSession: ({ agent, instance_id }) => quietly(agentStream(agent, instance_id)),
    recallRun: (runId) => quietly(runStream(runId)),
  };
}
