/** `kit/workflows`: the types of workflows, and of the runs that agents, tools, webhooks and workflows start. */

export type { StepOptions, StepWork } from "../engine/contract.ts";
export type {
  ApplicationCalls,
  Dispatch,
  DispatchInput,
  PayloadArguments,
  RunCalls,
  RunHandle,
  StartRun,
  StartRunOptions,
  WorkflowReference,
} from "../protocol/run-calls.ts";
export type {
  WorkflowDefinition,
  WorkflowOptions,
  WorkflowOutput,
  WorkflowPayload,
  WorkflowSchedule,
} from "./define-workflow.ts";
export type { KitContext, WorkflowContext, WorkflowLog, WorkflowSchema } from "./workflow-context.ts";
