/** `kit/client`: a kit server from elsewhere, browsers included. */
export { KitError } from "../base/kit-error.ts";
export type { ApprovalRequest } from "../protocol/approval.ts";
export type { DispatchRecord } from "../protocol/dispatch.ts";
export type { ErrorCode } from "../protocol/error-code.ts";
export type { KitEvent } from "../protocol/event.ts";
export type { PromptReply } from "../protocol/prompt.ts";
export type { RunRecord } from "../protocol/run.ts";
export type {
  AgentsClient,
  DispatchInput,
  InstanceInput,
  PromptInput,
  SessionInput,
} from "./agents-client.ts";
export type { CallOptions, KitClientOptions, RetryPolicy, WorkOptions } from "./call-options.ts";
export type { DispatchesClient } from "./dispatches-client.ts";
export type { GuidelinesClient } from "./guidelines-client.ts";
export { type DefaultPrompt, KitClient } from "./kit-client.ts";
export type { PromptStream } from "./prompt-stream.ts";
export type { ResultStream } from "./result-stream.ts";
export type { RunEventsInput, RunStream, RunsClient } from "./runs-client.ts";
export type { AgentConnection } from "./socket/agent-connection.ts";
export type { WorkflowConnection } from "./socket/workflow-connection.ts";
export type { SpecsClient } from "./specs-client.ts";
export type { WorkflowPayload, WorkflowsClient } from "./workflows-client.ts";
