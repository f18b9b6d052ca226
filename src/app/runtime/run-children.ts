import type { ValidateJson } from "../../agents/define/tool.ts";
import { jsonSchemaOf } from "../../agents/output/typed-output.ts";
import { checkAgainst, isStandardSchema } from "../../base/standard-schema.ts";
import type { RunContext, RunReceipt, RunSignal } from "../../engine/contract.ts";
import type { RunHandle, StartRun, StartRunOptions, WorkflowReference } from "../../protocol/run-calls.ts";
import type { WorkCause } from "../../protocol/work-cause.ts";
import type { WaitFor, WorkflowContext, WorkflowSchema } from "../../workflows/workflow-context.ts";

/** The origin of a run that is started, as the engine stores it. */
export interface RunOrigin {
  readonly idempotencyKey?: string | undefined;
  readonly principal?: string | undefined;
  /** The run that starts it, and takes it along when it is cancelled. */
  readonly parent_run_id?: string | undefined;
  /** The cause in its record; default: the run that starts it. */
  readonly cause?: WorkCause | undefined;
}

/** The runs of a project, as the run of one of its workflows asks for them. */
export interface ProjectRuns {
  /** The name of a workflow's file. Throws `workflow_not_found`. */
  nameOf(workflow: string | WorkflowReference<never>): string;
  start(name: string, payload: unknown, origin?: RunOrigin): Promise<RunReceipt>;
  /** Throws the error of a run that failed, and `run_not_found`. */
  result(runId: string, signal?: AbortSignal): Promise<unknown>;
  signal(runId: string, signal: RunSignal): Promise<void>;
  cancel(runId: string): Promise<boolean>;
  /** Notes what a wait of a run takes, for signals that come while this process lives. */
  expect(runId: string, name: string, schema: WorkflowSchema): void;
}

/** Makes the calls by which a run uses other runs, as steps of its journal. */
export function journalRuns(
  runs: ProjectRuns,
  context: RunContext,
  given: { readonly step: WorkflowContext["step"]; readonly principal: string | undefined },
): Pick<WorkflowContext, "startRun" | "getRun" | "run"> {
  const { step } = given;
  const handle = (runId: string): RunHandle => ({
    runId,
    result: async ({ signal } = {}) =>
      await step(`result of ${runId}`, async (work) => {
        const either = signal === undefined ? work.signal : AbortSignal.any([work.signal, signal]);
        // A run that waits for another one needs no slot meanwhile.
        const resume = context.releaseSlot();
        try {
          return await runs.result(runId, either);
        } finally {
          resume();
        }
      }),
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
    const name = runs.nameOf(workflow);
    const { run_id } = await step(`start ${name}`, (own) =>
      runs.start(name, payload, {
        idempotencyKey: idempotencyKey ?? own.idempotencyKey,
        principal: given.principal,
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

/** A run's `waitFor`: with a schema, what does not fit is passed over, and the run keeps waiting. */
export function typedWait(
  runs: ProjectRuns,
  context: RunContext,
  given: {
    readonly validateJson: ValidateJson;
    readonly warn: (message: string) => void;
  },
): WaitFor {
  return (async (
    name: string,
    { schema, timeoutMs }: { readonly schema?: WorkflowSchema; readonly timeoutMs?: number } = {},
  ) => {
    if (schema === undefined) return await context.waitFor(name, { timeoutMs });
    runs.expect(context.id, name, schema);
    const stored = isStandardSchema(schema) ? (jsonSchemaOf(schema) ?? true) : schema;
    const deadline = timeoutMs === undefined ? undefined : (await context.now()) + timeoutMs;
    for (let left = timeoutMs; ; ) {
      const payload = await context.waitFor(name, { timeoutMs: left, schema: stored });
      if (deadline !== undefined) {
        left = Math.max(0, deadline - (await context.now()));
        if (payload === undefined && left === 0) return undefined;
      }
      const check = await checkAgainst(schema, payload, given.validateJson);
      if (check.issues === undefined) return check.value;
      given.warn(
        `A signal ${JSON.stringify(name)} was passed over, which is not what the run waits for: ${check.issues.join("; ")}.`,
      );
    }
  }) as WaitFor;
}
