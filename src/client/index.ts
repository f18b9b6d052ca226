/** `kit/client`: a kit server from elsewhere, browsers included. */
export { KitError } from "../base/kit-error.ts";
export type { ApprovalRequest } from "../protocol/approval.ts";
export type { BackendName } from "../protocol/backend-name.ts";
export type { Diagnostic } from "../protocol/diagnostic.ts";
export type { DispatchRecord, DispatchStatus } from "../protocol/dispatch.ts";
export type { ErrorCause } from "../protocol/error-cause.ts";
export type { ErrorCode, ErrorIssue } from "../protocol/error-code.ts";
export type { EventType, KitEvent } from "../protocol/event.ts";
export type { ConversionResult, ExportResult, Guideline, GuidelineList } from "../protocol/guideline.ts";
export type { ConvertRequest, GuidelineQuery } from "../protocol/guideline-query.ts";
export type { AgentEntry, DispatchAccepted, HistoryMessage } from "../protocol/http/agent-schemas.ts";
export type { ApprovalBody, ApprovalQuery } from "../protocol/http/approval-schemas.ts";
export type { DispatchPage, DispatchQuery } from "../protocol/http/dispatch-schemas.ts";
export type {
  RunAccepted,
  RunCompleted,
  RunEventPage,
  RunPage,
  RunQuery,
  SignalBody,
  WorkflowEntry,
} from "../protocol/http/run-schemas.ts";
export type { Health } from "../protocol/http/service-schemas.ts";
export type { PruneBody, PrunedPage, SessionsQuery } from "../protocol/http/session-schemas.ts";
export type {
  ModelChoice,
  PromptBody,
  PromptChoices,
  PromptFile,
  PromptImage,
  PromptReply,
  PromptRequest,
} from "../protocol/prompt.ts";
export {
  createReceiptReader,
  type PromptPrefix,
  type ReceiptItem,
  type TurnReceipt,
} from "../protocol/receipt.ts";
export type { RunRecord, RunStatus, RunWait } from "../protocol/run.ts";
export type { TouchedSession, TouchedSessionPage } from "../protocol/session-entry.ts";
export type { SpecBlock } from "../protocol/spec-block.ts";
export type { Impact, ImpactRequest, SpecGraph, SpecPage, SpecQuery } from "../protocol/spec-query.ts";
export type { Usage } from "../protocol/usage.ts";
export type {
  AgentsClient,
  DispatchInput,
  InstanceInput,
  PromptInput,
  SessionInput,
} from "./agents-client.ts";
export type { ApprovalsClient } from "./approvals-client.ts";
export type { CallOptions, KitClientOptions, RetryPolicy, WorkOptions } from "./call-options.ts";
export type { DispatchesClient } from "./dispatches-client.ts";
export type { GuidelinesClient } from "./guidelines-client.ts";
export { type DefaultPrompt, KitClient } from "./kit-client.ts";
export type { PromptStream } from "./prompt-stream.ts";
export type { ResultStream } from "./result-stream.ts";
export type { RunEventsInput, RunStream, RunsClient } from "./runs-client.ts";
export type { SessionsClient } from "./sessions-client.ts";
export type { AgentConnection } from "./socket/agent-connection.ts";
export type { WorkflowConnection } from "./socket/workflow-connection.ts";
export type { SpecsClient } from "./specs-client.ts";
export type { WorkflowPayload, WorkflowsClient } from "./workflows-client.ts";
