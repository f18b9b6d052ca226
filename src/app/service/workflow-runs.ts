import { defined } from "../../base/defined.ts";
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
import { checkPayload } from "../runtime/check-payload.ts";
import { type LocalRun, runWorkflow, type WorkflowRuntime } from "../runtime/run-workflow.ts";
import { toIdempotencyKey } from "../runtime/session-key.ts";
import type { Sources } from "../sources/sources.ts";
import type { RunOptions, WorkflowResult } from "./app.ts";
import { followEvents } from "./prompts.ts";
import type { WorkTraces } from "./work-traces.ts";

export interface StartOptions {
  readonly idempotencyKey?: string | undefined;
  readonly principal?: string | undefined;
  readonly local?: LocalRun | undefined;
}

export interface WorkflowRunsOptions {
  readonly sources: Sources;
  readonly engine: Engine;
  readonly runtime: WorkflowRuntime;
  readonly traces: WorkTraces;
  /** Receives the error of a failed run that no call in this process waits for: it says more than the record. */
  readonly onFailure: (error: unknown) => void;
}

/** Runs that were started with a request and have not begun; of more, the oldest begin without it. */
const maxLocals = 10_000;

/** The runs of a project's workflows. */
export class WorkflowRuns {
  readonly #options: WorkflowRunsOptions;
  readonly #locals = new Map<string, LocalRun>();
  // Starts whose run id is not known yet: the run may begin before its caller has the id.
  readonly #starting = new Set<Promise<unknown>>();

  constructor(options: WorkflowRunsOptions) {
    this.#options = options;
  }

  /** Throws `workflow_not_found`, and `invalid_request` for a payload that the workflow's schema refuses. */
  async start(name: string, payload: unknown, options: StartOptions = {}): Promise<RunReceipt> {
    const { sources, engine, runtime, traces } = this.#options;
    const { idempotencyKey, principal, local } = options;
    await checkPayload(sources.workflow(name), payload, runtime.validateJson);
    const idempotency_key = toIdempotencyKey(idempotencyKey);
    const receipt = engine.startRun({
      workflow: name,
      payload,
      ...defined({ idempotency_key, principal }),
      ...traces.asked(),
    });
    if (local === undefined) return receipt;
    const known = receipt.then(({ run_id }) => this.#locals.set(run_id, local));
    this.#starting.add(known);
    await known.finally(() => this.#starting.delete(known));
    for (const oldest of this.#locals.keys()) {
      if (this.#locals.size <= maxLocals) break;
      this.#locals.delete(oldest);
    }
    return receipt;
  }

  /** Does the work of a run, whichever process has started it. */
  async perform(context: RunContext, request: RunRequest): Promise<unknown> {
    const { sources, engine, runtime, traces, onFailure } = this.#options;
    if (this.#starting.size > 0) await Promise.allSettled(this.#starting);
    const local = this.#locals.get(context.id);
    const starts = await engine.events.read(runStream(context.id), { limit: 1, types: ["run_start"] });
    const hasStartEvent = starts.length > 0;
    if (hasStartEvent) await traces.recallRun(context.id);
    try {
      const workflow = sources.workflow(request.workflow);
      return await runWorkflow(runtime, workflow, { context, request, hasStartEvent, local });
    } catch (error) {
      // A caller of this process gets the error from its call.
      const isOver = !context.signal.aborted && !isStoreUnavailable(error);
      if (isOver && local?.onFailure === undefined) onFailure(error);
      throw error;
    } finally {
      // A run that resumes later does so without a request that was answered long ago.
      if (local?.onFailure === undefined) this.#locals.delete(context.id);
    }
  }

  /** Starts a run, follows its events, and waits for its end. */
  async toEnd(
    name: string,
    { payload = {}, env, request, signal, onEvent }: RunOptions,
  ): Promise<WorkflowResult> {
    const { engine } = this.#options;
    signal?.throwIfAborted();
    let failure: KitError | undefined;
    const local: LocalRun = {
      env,
      request,
      onFailure(error) {
        failure = error;
      },
    };
    const { run_id } = await this.start(name, payload, { local });
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
      this.#locals.delete(run_id);
      signal?.removeEventListener("abort", cancel);
    }
  }
}

/** Listener errors never fail the run. */
function quiet(listener: NonNullable<RunOptions["onEvent"]>): NonNullable<RunOptions["onEvent"]> {
  return (event) => {
    try {
      const received = listener(event);
      if (received instanceof Promise) received.catch(() => undefined);
    } catch {
      // Observers of the application have `onListenerError`; this listener is its caller's.
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
