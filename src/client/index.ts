/** `kit/client`: a client of a kit server for programs and browsers. */

export { KitError } from "../base/kit-error.ts";
export type { DeepPartial } from "../base/record.ts";
export type {
  AllowChoices,
  AllowedCalls,
  AllowRule,
  ApprovalBody,
  ApprovalQuery,
  ApprovalRequest,
} from "../protocol/approval.ts";
export { type FileText, findChangedFile, previewChange } from "../protocol/call-change.ts";
export type { ClusterNodeState, ClusterProblem, ClusterState } from "../protocol/cluster.ts";
export type { CoveragePage, CoverageQuery, CriterionCoverage } from "../protocol/coverage.ts";
export type { Diagnostic, DiagnosticPage, DiagnosticQuery } from "../protocol/diagnostic.ts";
export type {
  CancelledPage,
  CancelManyBody,
  Delivery,
  DeliveryOutcome,
  DeliveryPage,
  DeliveryQuery,
  DispatchPage,
  DispatchQuery,
  DispatchRecord,
  DispatchStatus,
  RetriedPage,
  RetryManyBody,
} from "../protocol/dispatch.ts";
export type { BackendName } from "../protocol/enums.ts";
export { type SyncFormat, syncFormats } from "../protocol/enums.ts";
export { type ErrorCause, explainError } from "../protocol/error-cause.ts";
export type { ErrorCode } from "../protocol/error-code.ts";
export type { ErrorIssue, EventError } from "../protocol/errors.ts";
export type { EventType, KitEvent } from "../protocol/event.ts";
export { emptyTranscript, foldEvents } from "../protocol/fold-events.ts";
export type { ConversionResult, ExportResult, Guideline, GuidelineList } from "../protocol/guideline.ts";
export type {
  ConvertRequest,
  ExplainTool,
  FileExplanation,
  GuidelineQuery,
} from "../protocol/guideline-query.ts";
export type { GuidelineUsage, GuidelineUsageQuery, RuleUsage } from "../protocol/guideline-usage.ts";
export type { BegunLogin } from "../protocol/login.ts";
export type { Usage } from "../protocol/message.ts";
export type { FileLines, FileLinesQuery } from "../protocol/project-file.ts";
export type {
  AgentEntry,
  DispatchAccepted,
  HistoryEnd,
  HistoryMessage,
  HistoryPage,
  HistoryQuery,
  ModelChoice,
  PromptBody,
  PromptChoices,
  PromptFile,
  PromptImage,
  PromptReply,
  PromptRequest,
} from "../protocol/prompt.ts";
export { createReceiptReader, isRule } from "../protocol/read-records.ts";
export type { PromptPrefix, ReceiptItem, TurnReceipt } from "../protocol/receipt.ts";
export type {
  CancelledRuns,
  CancelRunsBody,
  RetriedRuns,
  RetryRunsBody,
  RunAccepted,
  RunCompleted,
  RunEventPage,
  RunJournalEntry,
  RunJournalPage,
  RunPage,
  RunQuery,
  RunRecord,
  RunStatus,
  RunWait,
  ScheduleRecord,
  SignalBody,
  WorkflowEntry,
} from "../protocol/run.ts";
export type { Finding, Health, Overview, ServerState } from "../protocol/service.ts";
export type {
  ListedSession,
  PruneBody,
  PrunedPage,
  SessionOrder,
  SessionPage,
  SessionState,
  SessionStatus,
  SessionsQuery,
  TouchedSession,
} from "../protocol/session-page.ts";
export type { SpecBlock } from "../protocol/spec-block.ts";
export type { CriterionHistory, CriterionHistoryQuery, PastState } from "../protocol/spec-history.ts";
export type {
  OutlineBlock,
  OutlinePage,
  OutlineQuery,
  SpecFeature,
  SpecFeaturePage,
  SpecFeatureQuery,
} from "../protocol/spec-outline.ts";
export type {
  ChangedSpec,
  Impact,
  ImpactBody,
  ImpactGraph,
  ImpactRequest,
  SpecGraph,
  SpecPage,
  SpecQuery,
} from "../protocol/spec-query.ts";
export type {
  SpecRunBody,
  SpecRunResult,
  SpecTaskDecision,
  SpecTaskProgress,
  SpecTaskState,
} from "../protocol/spec-run.ts";
export type { StalePage, StaleQuery } from "../protocol/stale.ts";
export type { FileChange, SyncBody, SyncResult } from "../protocol/sync.ts";
export type { LastResult, RecordedResults, TestReport } from "../protocol/test-results.ts";
export type {
  ForkBody,
  Forked,
  OperationEvents,
  OperationPage,
  OperationRecord,
  OperationsQuery,
  PromptMessage,
  TurnDetail,
  TurnQuery,
} from "../protocol/trace.ts";
export type {
  CallItem,
  CompactionItem,
  EndItem,
  GapItem,
  JoinedItem,
  OperationItem,
  RetryItem,
  TaskItem,
  TextItem,
  Transcript,
  TranscriptItem,
  TurnItem,
  WorkState,
} from "../protocol/transcript.ts";
export type { UiChunk, UiJoined, UiMetadata, UiTask } from "../protocol/ui.ts";
export type { Verdict, VerifyRequest } from "../protocol/verdict.ts";
export type {
  WaitingItem,
  WaitingLogin,
  WaitingPage,
  WaitingQuery,
  WaitingSignal,
} from "../protocol/waiting.ts";
export type { WorkCause } from "../protocol/work-cause.ts";
export type {
  AgentsClient,
  DispatchInput,
  InstanceInput,
  PromptInput,
  SessionInput,
} from "./agents-client.ts";
export type { CallOptions, KitClientOptions, RetryPolicy, WorkOptions } from "./call-options.ts";
export { type ChatDecision, type KitChatOptions, KitChatTransport } from "./chat-transport.ts";
export { type DefaultPrompt, KitClient } from "./kit-client.ts";
export type { FilesClient, GuidelinesClient, SpecsClient } from "./project-clients.ts";
export type { AnyProject, CompletedRun, ProjectTypes, WorkflowPayload } from "./project-types.ts";
export type { PromptStream, ResultStream, TypedReply } from "./result-stream.ts";
export type { RunEventsInput, RunStream, RunsClient } from "./runs-client.ts";
export type { AgentConnection } from "./socket/agent-connection.ts";
export type { WorkflowConnection } from "./socket/workflow-connection.ts";
export type {
  ApprovalsClient,
  DeliveriesClient,
  DispatchesClient,
  SessionsClient,
  WaitingClient,
} from "./work-clients.ts";
export type { WorkflowsClient } from "./workflows-client.ts";
