import "./base/require-node.ts";

export {
  type ApprovalFilter,
  type Approvals,
  type ApprovalsOptions,
  createApprovals,
} from "./agents/approvals/approvals.ts";
export {
  type AgentPolicy,
  type AgentProfile,
  type AllowedCommand,
  defineAgentProfile,
  mergeProfiles,
  profileToRole,
  type Role,
  roleToProfile,
} from "./agents/define/agent-profile.ts";
/**
 * `kit`: agents and what they are made of, open a project and ask it, configure it, and the records
 * that cross the wire.
 */
export type { ApprovalRules } from "./agents/define/approval-rules.ts";
export { type CommandAction, defineCommand, type KitCommand } from "./agents/define/command.ts";
export {
  type AgentContext,
  type AgentDefinition,
  type AgentSource,
  createAgent,
  type InstanceContext,
} from "./agents/define/create-agent.ts";
export type {
  AgentHooks,
  HookCall,
  ModelHookAnswer,
  ModelHookCall,
  Refusal,
  ToolHookCall,
  ToolHookResult,
} from "./agents/define/hooks.ts";
export type { Budget, CompactionSettings } from "./agents/define/limits.ts";
export type {
  BuiltInToolName,
  ModelSettings,
  ModelSource,
  ProfileModel,
} from "./agents/define/model-settings.ts";
export { defineSkill, type Skill } from "./agents/define/skill.ts";
export {
  type AnyTool,
  defineTool,
  type JsonSchema,
  type ToolContext,
  type ToolDef,
  type ToolDefinition,
  type ToolOutput,
  type ToolPlace,
  type ToolReturn,
} from "./agents/define/tool.ts";
export type { EventListener } from "./agents/events.ts";
export type { Agent } from "./agents/harness.ts";
export type { PromptOptions, PromptResult } from "./agents/operations/prompt-options.ts";
export type { ShellOptions } from "./agents/operations/run-shell.ts";
export type { SkillOptions } from "./agents/operations/run-skill.ts";
export type { TaskOptions } from "./agents/operations/run-task.ts";
export {
  type OutputSchema,
  type TypedOutputAttempt,
  TypedOutputError,
} from "./agents/output/typed-output.ts";
export type { FileInput, ImageInput } from "./agents/prompt/input-files.ts";
export type { Session, SessionStream } from "./agents/session/session.ts";
export type { SandboxKind } from "./app/config/config-lists.ts";
export type {
  AgentConfig,
  ApprovalsConfig,
  CompactionConfig,
  EngineConfig,
  KitConfig,
  StoreConfig,
} from "./app/config/config-schema.ts";
export { defineConfig } from "./app/config/kit-config.ts";
export type { SandboxChoice, SandboxConfig, SandboxOptions } from "./app/config/sandbox-schema.ts";
export type { AuthRequest, ServerConfig } from "./app/config/server-schema.ts";
export type { Agents, App, InitContext, RunOptions, WorkflowResult } from "./app/service/app.ts";
export {
  type InitAgentOptions,
  initAgent,
  type OpenAgentsOptions,
  type OpenServiceOptions,
  openAgents,
  openService,
} from "./app/service/open-service.ts";
export type { InstanceTarget, ProjectService, PromptCall, Service } from "./app/service/service.ts";
export type { SourceFile, SourceProblem } from "./app/sources/discover-sources.ts";
export { loadSkill } from "./app/sources/load-skills.ts";
export type {
  LoadedAgent,
  LoadedWorkflow,
  Triggers,
} from "./app/sources/load-source.ts";
export type {
  AgentBackend,
  BackendCall,
  BackendCapabilities,
  BackendChoice,
  BackendMessage,
  BackendOperation,
  BackendQuestion,
  BackendState,
  BackendTool,
  BackendTurn,
  OwnTool,
  TurnRequest,
} from "./backends/contract.ts";
export type { DeepPartial } from "./base/deep-partial.ts";
export { KitError, type KitErrorInit } from "./base/kit-error.ts";
export type { StandardSchemaV1 } from "./base/standard-schema.ts";
export { version } from "./base/version.ts";
export type {
  AdmitRequest,
  DispatchFilter,
  Engine,
  EngineHandlers,
  EventLog,
  EventReadOptions,
  EventSubscription,
  LinePlace,
  Page,
  RunContext,
  RunEventBody,
  RunFilter,
  RunReceipt,
  RunRequest,
  RunSignal,
  StepOptions,
  StepWork,
  WaitOptions,
  WorkContext,
} from "./engine/contract.ts";
export type { McpConfig, McpMode, McpServerConfig } from "./mcp/servers/mcp-config.ts";
export type { ProviderConfig, ProviderConfigs } from "./models/provider-config.ts";
export { openProject } from "./project/open-project.ts";
export type {
  OpenProjectOptions,
  Project,
  ProjectConfig,
  ProjectGuidelines,
  ProjectSpecs,
  RefreshOptions,
  ScanSummary,
} from "./project/project.ts";
export type { FileDates } from "./project/scan/git/file-dates.ts";
export type { ApprovalDecision, ApprovalRequest } from "./protocol/approval.ts";
export type { Diagnostic, DiagnosticRule } from "./protocol/diagnostic.ts";
export type { DispatchReceipt, DispatchRecord, DispatchStatus } from "./protocol/dispatch.ts";
export type { BackendName } from "./protocol/enums.ts";
export { type ThinkingLevel, thinkingLevels } from "./protocol/enums.ts";
export type { ErrorCause } from "./protocol/error-cause.ts";
export { type ErrorCode, errorCodes } from "./protocol/error-code.ts";
export type { ErrorEnvelope, ErrorIssue } from "./protocol/errors.ts";
export type { EventBody, EventError, EventType, KitEvent, OperationKind } from "./protocol/event.ts";
export type {
  ConversionFormat,
  ConversionResult,
  ExportFormat,
  ExportResult,
  Guideline,
  GuidelineList,
  SourceType,
} from "./protocol/guideline.ts";
export type {
  AppliedGuideline,
  ConvertRequest,
  ExplainTool,
  Explanation,
  ExportRequest,
  GuidelineQuery,
  ShadowedGuideline,
} from "./protocol/guideline-query.ts";
export type {
  AssistantMessage,
  FilePart,
  FinishReason,
  ImagePart,
  Message,
  ReasoningPart,
  TextPart,
  ToolCallPart,
  ToolMessage,
  ToolResultPart,
  UserMessage,
} from "./protocol/message.ts";
export type {
  ModelChoice,
  PromptChoices,
  PromptFile,
  PromptImage,
  PromptReply,
  PromptRequest,
} from "./protocol/prompt.ts";
export type { PromptPrefix, ReceiptItem, ReceiptKind, TurnReceipt } from "./protocol/receipt.ts";
export { createReceiptReader } from "./protocol/receipt-reader.ts";
export type { RunRecord, RunStatus, RunWait, ScheduleRecord } from "./protocol/run.ts";
export type {
  ApplicationCalls,
  Dispatch,
  DispatchInput,
  RunCalls,
  RunHandle,
  StartRun,
  StartRunOptions,
  WorkflowReference,
} from "./protocol/run-calls.ts";
export type { SessionEntry, SessionInfo, SessionKey } from "./protocol/session-entry.ts";
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
} from "./protocol/spec-block.ts";
export type {
  AffectedSpec,
  Impact,
  ImpactEdge,
  ImpactRequest,
  SpecEdgeKind,
  SpecGraph,
  SpecPage,
  SpecQuery,
} from "./protocol/spec-query.ts";
export type { SyncEntry, SyncFormat, SyncPlan, SyncRequest, SyncResult } from "./protocol/sync.ts";
export type { Cost, ModelPrice, Usage } from "./protocol/usage.ts";
export type {
  CommandAccess,
  CommandLimits,
  ExecRequest,
  ExecResult,
  IsolationMode,
  IsolationOptions,
  Sandbox,
  SandboxFactory,
  SandboxIsolation,
  SandboxOwner,
} from "./sandboxes/contract.ts";
export type { SpecAdapter } from "./specs/adapter.ts";
export type { AppendRequest, SessionStore } from "./stores/contract.ts";
export { InMemorySessionStore } from "./stores/memory/memory-store.ts";
export { SqliteSessionStore, type SqliteSessionStoreOptions } from "./stores/sqlite/sqlite-store.ts";
export {
  defineWorkflow,
  type WorkflowDefinition,
  type WorkflowOptions,
  type WorkflowOutput,
  type WorkflowPayload,
  type WorkflowSchedule,
} from "./workflows/define-workflow.ts";
export type { KitContext, WorkflowContext, WorkflowLog } from "./workflows/workflow-context.ts";
export type { WorkflowSchema } from "./workflows/workflow-schema.ts";
