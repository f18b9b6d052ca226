import type { ValidateJson } from "../../agents/define/tool.ts";
import { jsonSchemaOf } from "../../agents/output/typed-output.ts";
import { toSentence } from "../../base/error-text.ts";
import { checkAgainst, isStandardSchema } from "../../base/standard-schema.ts";
import type { RunContext, RunReceipt, RunSignal } from "../../engine/contract.ts";
import { faultOfSchema } from "../../json-schema/schema-fault.ts";
import type { RunHandle, StartRun, StartRunOptions, WorkflowReference } from "../../protocol/run-calls.ts";
import type { WorkCause } from "../../protocol/work-cause.ts";
import type { WaitFor, WorkflowContext, WorkflowSchema } from "../../workflows/workflow-context.ts";
import { usable } from "./usable-code.ts";

/** The origin of a new run, as the engine stores it. */
export interface RunOrigin {
  readonly idempotencyKey?: string | undefined;
  readonly principal?: string | undefined;
  /** The parent run; cancelling it cancels the new run. */
  readonly parent_run_id?: string | undefined;
  /** The cause in the record; default: the parent run. */
  readonly cause?: WorkCause | undefined;
}

/** Starts and awaits runs for a run of the same project. */
export interface ProjectRuns {
  /** Returns the name of a workflow's file. Throws `workflow_not_found`. */
  nameOf(workflow: string | WorkflowReference<never>): string;
  start(name: string, payload: unknown, origin?: RunOrigin): Promise<RunReceipt>;
  /** Waits for the result of a run. Throws the error of a failed run, and `run_not_found`. */
  result(runId: string, signal?: AbortSignal): Promise<unknown>;
  signal(runId: string, signal: RunSignal): Promise<void>;
  cancel(runId: string): Promise<boolean>;
  /** Remembers the schema of a run's wait, for signals that arrive while this process lives. */
  expect(runId: string, name: string, schema: WorkflowSchema): void;
}

/** Creates the calls with which a run uses other runs; each is a step of its journal. */
export function journalRuns(
  runs: ProjectRuns,
  context: RunContext,
  run: Pick<RunContext, "step" | "stepAfter"> & { readonly principal: string | undefined },
): Pick<WorkflowContext, "startRun" | "getRun" | "run"> {
  const { step } = run;
  const handle = (runId: string): RunHandle => ({
    runId,
    result: async ({ signal } = {}) =>
      await run.stepAfter(
        `result of ${runId}`,
        async (work) => await runs.result(runId, AbortSignal.any([work.signal, ...(signal ? [signal] : [])])),
        { run_id: runId, signal },
      ),
    signal: async (name, payload) =>
      await step(`signal ${name} to ${runId}`, ({ idempotencyKey }) =>
        runs.signal(runId, { name, payload, idempotency_key: idempotencyKey }),
      ),
    cancel: async () => await step(`cancel ${runId}`, () => runs.cancel(runId)),
  });
  const start = async (
    workflow: string | WorkflowReference<never>,
    payload: unknown = {},
    { idempotencyKey }: StartRunOptions = {},
  ): Promise<RunHandle> => {
    const name = usable(() => runs.nameOf(workflow), context);
    const { run_id } = await step(`start ${name}`, (attempt) =>
      runs.start(name, payload, {
        idempotencyKey: idempotencyKey ?? attempt.idempotencyKey,
        principal: run.principal,
        parent_run_id: context.id,
      }),
    );
    return handle(run_id);
  };
  return {
    startRun: start as StartRun,
    getRun: handle,
    run: (async (workflow: string | WorkflowReference<never>, payload?: unknown) =>
      await (await start(workflow, payload)).result()) as WorkflowContext["run"],
  };
}

interface SignalOptions {
  readonly schema?: WorkflowSchema;
  readonly timeoutMs?: number;
  readonly message?: string;
}

/** A run's `waitFor`: with a schema, the run ignores invalid signals and continues to wait. */
export function typedWait(
  runs: ProjectRuns,
  context: RunContext,
  options: {
    readonly validateJson: ValidateJson;
    readonly warn: (message: string) => void;
  },
): WaitFor {
  return (async (name: string, { schema, timeoutMs, message }: SignalOptions = {}) => {
    if (message !== undefined && typeof message !== "string")
      throw new TypeError(`The message of waitFor(${JSON.stringify(name)}) must be a text.`);
    // The engine stores a wait with its schema, whose description the person reads.
    const described = message === undefined ? {} : { description: message };
    if (schema === undefined)
      return await context.waitFor(name, {
        timeoutMs,
        schema: message === undefined ? undefined : described,
      });
    const fault = faultOfSchema(schema);
    if (fault !== undefined)
      throw new TypeError(toSentence(`The schema of waitFor(${JSON.stringify(name)}) ${fault}`));
    runs.expect(context.id, name, schema);
    const own = isStandardSchema(schema) ? (jsonSchemaOf(schema) ?? true) : schema;
    const stored = message === undefined ? own : { ...(own === true ? {} : own), ...described };
    const deadline = timeoutMs === undefined ? undefined : (await context.now()) + timeoutMs;
    for (let remainingMs = timeoutMs; ; ) {
      const payload = await context.waitFor(name, { timeoutMs: remainingMs, schema: stored });
      if (deadline !== undefined) {
        remainingMs = Math.max(0, deadline - (await context.now()));
        if (payload === undefined && remainingMs === 0) return undefined;
      }
      const check = await checkAgainst(schema, payload, options.validateJson);
      if (check.issues === undefined) return check.value;
      options.warn(
        `The run ignored the signal ${JSON.stringify(name)}: its payload does not match the schema of waitFor: ${check.issues.join("; ")}.`,
      );
    }
  }) as WaitFor;
}
