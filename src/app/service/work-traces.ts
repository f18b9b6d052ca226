import { type AdmitRequest, agentStream, type Engine, runStream } from "../../engine/contract.ts";
import type { EventType } from "../../protocol/event.ts";
import type { TraceContext } from "../../protocol/trace-context.ts";
import type { Observers } from "../runtime/observers.ts";
import { origins } from "../runtime/origins.ts";

/** The traces of what a service accepts and does. */
export interface WorkTraces {
  /** Where the code that asks for work stands, for the engine to keep. */
  asked(): { readonly trace?: TraceContext };
  /** Takes up the spans of a session that another process began and did not end. */
  recallSession(request: Pick<AdmitRequest, "agent" | "instance_id">): Promise<void>;
  /** The same of a run. */
  recallRun(runId: string): Promise<void>;
}

/** How far back events are looked at: what was interrupted is near the end of its stream. */
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
    const found = begun.filter(({ type }) => type === "run_start");
    let after = Math.max(begun[0]?.index ?? 0, (await events.last(stream)) - recalledEvents);
    for (;;) {
      const page = await events.read(stream, { after, limit: pageSize, types: ofSpans });
      found.push(...page);
      after = page.at(-1)?.index ?? after;
      if (page.length < pageSize) break;
    }
    tracing.recall(found);
  }
  // Work does not wait for what its traces lack.
  const quietly = (stream: string): Promise<void> => recall(stream).catch(() => undefined);
  return {
    asked() {
      const { traceparent, tracestate } = origins.current() ?? observers.tracing?.active() ?? {};
      if (traceparent === undefined) return {};
      return { trace: tracestate === undefined ? { traceparent } : { traceparent, tracestate } };
    },
    recallSession: ({ agent, instance_id }) => quietly(agentStream(agent, instance_id)),
    recallRun: (runId) => quietly(runStream(runId)),
  };
}
