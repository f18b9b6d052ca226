/** `kit/protocol`: the records that cross a wire or are stored: events, messages, runs, specs, guidelines, errors. */

export type { KitErrorInit } from "../base/kit-error.ts";
export type { ApprovalDecision, ApprovalRequest } from "./approval.ts";
export type { Diagnostic, DiagnosticRule } from "./diagnostic.ts";
export type { DispatchReceipt, DispatchRecord, DispatchStatus } from "./dispatch.ts";
export { type BackendName, type ThinkingLevel, thinkingLevels } from "./enums.ts";
export type { ErrorCause } from "./error-cause.ts";
export { type ErrorCode, errorCodes } from "./error-code.ts";
export type { ErrorEnvelope, ErrorIssue } from "./errors.ts";
export type { EventBody, EventError, EventType, KitEvent, OperationKind } from "./event.ts";
export type {
  ConversionFormat,
  ConversionResult,
  ExportFormat,
  ExportResult,
  Guideline,
  GuidelineList,
  SourceType,
} from "./guideline.ts";
export type {
  AppliedGuideline,
  ConvertRequest,
  ExplainTool,
  Explanation,
  ExportRequest,
  GuidelineQuery,
  ShadowedGuideline,
} from "./guideline-query.ts";
export type { GuidelineUsage, GuidelineUsageQuery, RuleUsage } from "./guideline-usage.ts";
export type {
  AssistantMessage,
  Cost,
  FilePart,
  FinishReason,
  ImagePart,
  Message,
  ModelPrice,
  ReasoningPart,
  TextPart,
  ToolCallPart,
  ToolMessage,
  ToolResultPart,
  Usage,
  UserMessage,
} from "./message.ts";
export type {
  ModelChoice,
  PromptChoices,
  PromptFile,
  PromptImage,
  PromptReply,
  PromptRequest,
} from "./prompt.ts";
export { createReceiptReader } from "./read-records.ts";
export type { PromptPrefix, ReceiptItem, ReceiptKind, TurnReceipt } from "./receipt.ts";
export type { RunRecord, RunStatus, RunWait, ScheduleRecord } from "./run.ts";
export type { SessionEntry, SessionInfo, SessionKey } from "./session-entry.ts";
export type {
  AcceptanceCriterion,
  EarsEntry,
  EarsPattern,
  Framework,
  Lifecycle,
  Priority,
  SourceSpan,
  SpecBlock,
  SpecMetadata,
  SpecType,
} from "./spec-block.ts";
export type {
  AffectedSpec,
  ChangedSpec,
  ComparedSpecs,
  Impact,
  ImpactEdge,
  ImpactRequest,
  SpecEdgeKind,
  SpecGraph,
  SpecPage,
  SpecQuery,
} from "./spec-query.ts";
export type { SyncEntry, SyncFormat, SyncPlan, SyncRequest, SyncResult, SyncWrite } from "./sync.ts";
export type { WorkCause } from "./work-cause.ts";
