import { KitError } from "../../base/kit-error.ts";
import {
  type Engine,
  type RunContext,
  type RunReceipt,
  type RunRequest,
  runStream,
} from "../../engine/contract.ts";
import { causeLine, fromErrorCause } from "../../protocol/error-cause.ts";
import type { EventError } from "../../protocol/event.ts";
import type { RunRecord } from "../../protocol/run.ts";
import { isStoreUnavailable } from "../../protocol/store-fault.ts";
import type { RunOptions, WorkflowResult } from "../runtime/app.ts";
import type { HostedApp, LocalRun } from "../runtime/hosted-app.ts";
import { keyed } from "../runtime/session-key.ts";
import { followEvents } from "./follow-events.ts";
import type { WorkTraces } from "./work-traces.ts";

/** The runs of an application's workflows. */
export interface WorkflowRuns {
  start(
    workflow: string,
    payload: unknown,
    options?: {
      readonly idempotencyKey?: string;
      readonly principal?: string;
      readonly local?: LocalRun;
    },
  ): Promise<RunReceipt>;
  /** Does the work of a run, whoever has started it. */
  perform(context: RunContext, request: RunRequest): Promise<unknown>;
  /** Starts a run, hears its events, and waits for its end. */
  toEnd(workflow: string, options: RunOptions): Promise<WorkflowResult>;
}

/** Runs that were started with a request and have not begun; of more, the oldest do without. */
const maxLocals = 10_000;

/** `onFailure` is told why a run failed, which says more than its record. */
export function createWorkflowRuns(
  { app, engine, traces }: { readonly app: HostedApp; readonly engine: Engine; readonly traces: WorkTraces },
  onFailure: (error: unknown) => void,
): WorkflowRuns {
  const locals = new Map<string, LocalRun>();
  // Starts whose run is not known yet: it may begin before they are told its id.
  const starting = new Set<Promise<unknown>>();

  const start: WorkflowRuns["start"] = async (name, payload, { idempotencyKey, principal, local } = {}) => {
    await app.checkPayload(app.workflow(name), payload);
    const receipt = engine.startRun({
      workflow: name,
      payload,
      ...keyed(idempotencyKey),
      ...(principal === undefined ? {} : { principal }),
      ...traces.asked(),
    });
    if (local === undefined) return receipt;
    const known = receipt.then(({ run_id }) => locals.set(run_id, local));
    starting.add(known);
    await known.finally(() => starting.delete(known));
    for (const oldest of locals.keys()) {
      if (locals.size <= maxLocals) break;
      locals.delete(oldest);
    }
    return receipt;
  };

  return {
    start,
    async perform(context, request) {
      if (starting.size > 0) await Promise.allSettled(starting);
      const local = locals.get(context.id);
      const starts = await engine.events.read(runStream(context.id), { limit: 1, types: ["run_start"] });
      const hasStartEvent = starts.length > 0;
      if (hasStartEvent) await traces.recallRun(context.id);
      try {
        return await app.perform({ context, request, hasStartEvent, local });
      } catch (error) {
        // Who waits for it in this process is told by the call.
        const isOver = !context.signal.aborted && !isStoreUnavailable(error);
        if (isOver && local?.onFailure === undefined) onFailure(error);
        throw error;
      } finally {
        // A run that goes on later does so without a request that was answered long ago.
        if (local?.onFailure === undefined) locals.delete(context.id);
      }
    },
    async toEnd(name, { payload = {}, env, request, signal, onEvent }) {
      signal?.throwIfAborted();
      let failure: KitError | undefined;
      const local: LocalRun = {
        ...(env === undefined ? {} : { env }),
        ...(request === undefined ? {} : { request }),
        onFailure(error) {
          failure = error;
        },
      };
      const { run_id } = await start(name, payload, { local });
      const cancel = (): void => void engine.cancelRun(run_id).catch(() => undefined);
      signal?.addEventListener("abort", cancel, { once: true });
      if (signal?.aborted) cancel();
      try {
        const ended = engine.awaitRun(run_id);
        const run = await (onEvent === undefined
          ? ended
          : followEvents(engine.events, {
              stream: runStream(run_id),
              after: 0,
              until: ended,
              listener: quiet(onEvent),
            }));
        signal?.throwIfAborted();
        if (run?.status === "completed") return { run_id, result: run.result };
        throw failure ?? failureOf(run_id, run);
      } finally {
        locals.delete(run_id);
        signal?.removeEventListener("abort", cancel);
      }
    },
  };
}

/** A listener that throws is its maker's affair: the run goes on. */
function quiet(listener: NonNullable<RunOptions["onEvent"]>): NonNullable<RunOptions["onEvent"]> {
  return (event) => {
    try {
      const heard = listener(event);
      if (heard instanceof Promise) heard.catch(() => undefined);
    } catch {
      // Application-wide observers have a place to report to; this is a caller's.
    }
  };
}

function failureOf(runId: string, run: RunRecord | undefined): KitError {
  const { type, message, cause }: EventError = run?.error ?? {
    type: "aborted",
    message: "The run was cancelled.",
  };
  const meta = { run_id: runId };
  if (cause === undefined) return new KitError({ code: type, message, meta });
  return new KitError({ code: type, message, meta, hint: causeLine(cause), cause: fromErrorCause(cause) });
}
