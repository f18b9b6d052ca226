import { toSentence } from "../../base/error-text.ts";
import { KitError } from "../../base/kit-error.ts";
import { defined, isRecord } from "../../base/record.ts";
import { checkAgainst, checkPayload } from "../../base/standard-schema.ts";
import type {
  Engine,
  EngineHandlers,
  RunContext,
  RunReceipt,
  RunRequest,
  RunSignal,
} from "../../engine/contract.ts";
import { isBuiltInName } from "../../protocol/built-in-workflows.ts";
import { causeLine, fromErrorCause } from "../../protocol/error-cause.ts";
import type { EventError } from "../../protocol/event.ts";
import { outageOf } from "../../protocol/outage.ts";
import type { RunRecord } from "../../protocol/run.ts";
import type {
  RunCalls,
  RunHandle,
  StartRun,
  StartRunOptions,
  WorkflowReference,
} from "../../protocol/run-calls.ts";
import { runStream } from "../../protocol/session-name.ts";
import type { WorkflowSchema } from "../../workflows/workflow-context.ts";
import type { WorkTraces } from "../runtime/observers.ts";
import type { ProjectRuns, RunOrigin } from "../runtime/run-children.ts";
import type { LocalRun, WorkflowRuntime } from "../runtime/run-workflow.ts";
import { usable } from "../runtime/usable-code.ts";
import { createJsonValidator } from "../runtime/validate-json.ts";
import type { Sources } from "../sources/sources.ts";
import type { RunOptions, WorkflowResult } from "./app.ts";
import type { BuiltInWorkflows } from "./built-in-workflows.ts";
import { followEvents } from "./prompts.ts";
import { toIdempotencyKey } from "./session-input.ts";
import type { WorkSlots } from "./work-slots.ts";

export interface StartOptions extends RunOrigin {
  readonly local?: LocalRun | undefined;
  /** When the request came, in ms by `performance.now()`. */
  readonly receivedAt?: number | undefined;
}

export interface WorkflowRunsOptions {
  readonly sources: Sources;
  /** kit's own workflows; undefined where no project is open. */
  readonly builtIns?: BuiltInWorkflows | undefined;
  readonly engine: Engine;
  readonly slots: WorkSlots;
  readonly runtime: WorkflowRuntime;
  readonly traces: WorkTraces;
  /** Receives the error of a failed run if no call in this process waits for the run: it has more details than the record. */
  readonly onFailure: (error: unknown) => void;
}

/** The most runs whose request is kept until they begin; beyond that, the oldest runs begin without their request. */
const maxLocals = 10_000;

/** The runs of a project's workflows. */
export class WorkflowRuns implements ProjectRuns {
  readonly #options: WorkflowRunsOptions;
  readonly #locals = new Map<string, LocalRun>();
  // Starts whose run id is not known yet: the run can begin before its caller has the id.
  readonly #starting = new Set<Promise<unknown>>();

  constructor(options: WorkflowRunsOptions) {
    this.#options = options;
  }

  /** Lenient: the run checks the signal again, and a schema of zod can have formats and patterns that only zod checks. */
  readonly #checkStored = createJsonValidator({ isLenient: true });

  /** By run: the schemas of its waits by name, as far as this process knows them. */
  readonly #expected = new Map<string, Map<string, WorkflowSchema>>();

  nameOf(workflow: string | WorkflowReference<never>): string {
    const { sources, builtIns } = this.#options;
    const isBuiltIn = builtIns !== undefined && typeof workflow === "string" && isBuiltInName(workflow);
    return isBuiltIn ? workflow : sources.workflowName(workflow);
  }

  async result(runId: string, signal?: AbortSignal): Promise<unknown> {
    const run = await this.#options.engine.awaitRun(runId, { signal });
    if (run === undefined) throw new KitError({ code: "run_not_found", message: "There is no such run." });
    if (run.status === "completed") return run.result;
    const { code, message, hint, meta, cause } = failureOf(runId, run);
    const described = `The run ${runId} of "${run.workflow}" ${run.status === "cancelled" ? "was cancelled" : `failed: ${message}`}`;
    throw new KitError({ code, message: toSentence(described), cause, ...defined({ hint, meta }) });
  }

  async signal(runId: string, signal: RunSignal): Promise<void> {
    await this.#options.engine.signal(runId, signal);
  }

  async cancel(runId: string): Promise<boolean> {
    return await this.#options.engine.cancelRun(runId);
  }

  expect(runId: string, name: string, schema: WorkflowSchema): void {
    const waits = this.#expected.get(runId) ?? new Map<string, WorkflowSchema>();
    this.#expected.set(runId, waits.set(name, schema));
    forgetOldest(this.#expected);
  }

  /** Returns the calls with which agents, tools and webhooks start runs and wait for them. */
  callsFor(origin: () => Omit<RunOrigin, "idempotencyKey">): RunCalls {
    const getRun = (runId: string): RunHandle => ({
      runId,
      result: async ({ signal } = {}) =>
        await this.#options.slots.whileFree(() => this.result(runId, signal)),
      signal: async (name, payload) => await this.signal(runId, { name, payload }),
      cancel: async () => await this.cancel(runId),
    });
    const startRun = async (
      workflow: string | WorkflowReference<never>,
      payload: unknown = {},
      { idempotencyKey }: StartRunOptions = {},
    ): Promise<RunHandle> => {
      const { run_id } = await this.start(this.nameOf(workflow), payload, { ...origin(), idempotencyKey });
      return getRun(run_id);
    };
    return { startRun: startRun as StartRun, getRun };
  }

  /** Checks a signal with the schema in the run's code, else with the JSON Schema stored with the wait. Returns the issues. */
  async checkSignal(
    { run_id, name, schema }: Parameters<NonNullable<EngineHandlers["checkSignal"]>>[0],
    payload: unknown,
  ): Promise<readonly string[]> {
    const expectedSchema = this.#expected.get(run_id)?.get(name);
    if (expectedSchema !== undefined)
      return (await checkAgainst(expectedSchema, payload, this.#options.runtime.validateJson)).issues ?? [];
    return isRecord(schema) ? await this.#checkStored(schema, payload) : [];
  }

  /**
   * Starts a run. Throws `workflow_not_found`, `invalid_request` for a payload that does not match the workflow's schema, and the reason
   * for which a workflow of kit's own admits no run.
   */
  async start(name: string, payload: unknown, options: StartOptions = {}): Promise<RunReceipt> {
    const { sources, builtIns, engine, runtime, traces } = this.#options;
    const { idempotencyKey, principal, local, parent_run_id, receivedAt: received_at } = options;
    const cause = options.cause ?? (parent_run_id && ({ type: "run", run_id: parent_run_id } as const));
    const builtIn = await builtIns?.find(name);
    const workflow = builtIn ?? sources.workflow(name);
    const checked = await checkPayload(workflow.payload, payload, {
      receiver: `the workflow "${workflow.name}"`,
      validateJson: runtime.validateJson,
    });
    await builtIn?.admit?.(checked as never);
    const idempotency_key = toIdempotencyKey(idempotencyKey);
    const receipt = engine.startRun({
      workflow: name,
      payload,
      ...defined({ idempotency_key, principal, parent_run_id, received_at, cause: cause || undefined }),
      ...traces.ofCaller(),
    });
    if (local === undefined) return receipt;
    const stored = receipt.then(({ run_id }) => this.#locals.set(run_id, local));
    this.#starting.add(stored);
    await stored.finally(() => this.#starting.delete(stored));
    forgetOldest(this.#locals);
    return receipt;
  }

  /** Runs the workflow of a run that this or another process has started. */
  async perform(context: RunContext, request: RunRequest): Promise<unknown> {
    const { sources, builtIns, engine, runtime, traces, onFailure } = this.#options;
    if (this.#starting.size > 0) await Promise.allSettled(this.#starting);
    const local = this.#locals.get(context.id);
    const starts = await engine.events.read(runStream(context.id), { limit: 1, types: ["run_start"] });
    const hasStartEvent = starts.length > 0;
    if (hasStartEvent) await traces.recallRun(context.id);
    try {
      const builtIn = await builtIns?.find(request.workflow);
      const workflow = builtIn ?? usable(() => sources.workflow(request.workflow), context);
      // Most programs run no workflow; a server has loaded this with its engine (`load-own-code.ts`).
      const { runWorkflow } = await import("../runtime/run-workflow.ts");
      return await runWorkflow(runtime, workflow, { context, request, hasStartEvent, local, runs: this });
    } catch (error) {
      // A caller in this process gets the error from its call.
      const isOver = !context.signal.aborted && outageOf(error) === undefined;
      if (isOver && local?.onFailure === undefined) onFailure(error);
      throw error;
    } finally {
      // A suspended run keeps its schemas, to check the signal that resumes it.
      if (!context.signal.aborted) this.#expected.delete(context.id);
      // A run that resumes later has no request: it was answered before.
      if (local?.onFailure === undefined) this.#locals.delete(context.id);
    }
  }

  /**
   * Reports a run that waits because of its code: to the call in this process that has started it or a run above it, otherwise
   * to the log.
   */
  noteHeld(
    problem: KitError,
    { run_id, workflow }: { readonly run_id: string; readonly workflow: string },
  ): void {
    const { code, message, hint } = problem;
    const error = new KitError({
      code,
      message: `The run ${run_id} of "${workflow}" waits, because its code cannot go on: ${message}`,
      ...defined({ hint }),
      meta: { ...problem.meta, run_id },
    });
    const { onFailure } = this.#options;
    this.#heldListener(run_id).then(
      (onHeld = onFailure) => onHeld(error),
      () => onFailure(error),
    );
  }

  /** The listener of the call in this process that has started a run, or the nearest run above it. */
  async #heldListener(runId: string): Promise<LocalRun["onHeld"]> {
    let id: string | undefined = runId;
    while (id !== undefined && this.#locals.size > 0) {
      const onHeld = this.#locals.get(id)?.onHeld;
      if (onHeld !== undefined) return onHeld;
      id = (await this.#options.engine.getRun(id))?.parent_run_id;
    }
    return undefined;
  }

  /** Starts a run, follows its events, and waits for its end. Throws the problem of the run, or of one below it, that is held. */
  async toEnd(
    name: string,
    { payload = {}, env, request, signal, onEvent }: RunOptions,
  ): Promise<WorkflowResult> {
    const { engine } = this.#options;
    signal?.throwIfAborted();
    let failure: KitError | undefined;
    const held = Promise.withResolvers<never>();
    held.promise.catch(() => undefined);
    const local: LocalRun = {
      env,
      request,
      onHeld: held.reject,
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
      const followed =
        onEvent === undefined
          ? ended
          : followEvents(engine.events, {
              stream: runStream(run_id),
              after: 0,
              until: Promise.race([ended, held.promise]),
              listener: quiet(onEvent),
            });
      const run = await Promise.race([followed, held.promise]);
      signal?.throwIfAborted();
      if (run?.status === "completed") return { run_id, result: run.result };
      throw failure ?? failureOf(run_id, run);
    } finally {
      this.#locals.delete(run_id);
      signal?.removeEventListener("abort", cancel);
    }
  }
}

function forgetOldest(map: Map<string, unknown>): void {
  for (const oldest of map.keys()) {
    if (map.size <= maxLocals) return;
    map.delete(oldest);
  }
}

/** Listener errors never fail the run. */
function quiet(listener: NonNullable<RunOptions["onEvent"]>): NonNullable<RunOptions["onEvent"]> {
  return (event) => {
    try {
      const received = listener(event);
      if (received instanceof Promise) received.catch(() => undefined);
    } catch {
      // `onListenerError` reports errors of the application's observers only; this listener belongs to the caller.
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
