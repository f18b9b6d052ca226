/**
 * `kit`: open a project and ask it, configure it, and the records that cross the wire.
 */
export {
  type AuthRequest,
  defineConfig,
  type KitConfig,
  type ServerConfig,
} from "./app/config/kit-config.ts";
export { KitError, type KitErrorInit } from "./base/kit-error.ts";
export { version } from "./base/version.ts";
export type { FileDates } from "./project/git/file-dates.ts";
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
export type { Diagnostic, DiagnosticRule } from "./protocol/diagnostic.ts";
export { type ErrorCode, type ErrorEnvelope, type ErrorIssue, errorCodes } from "./protocol/error-code.ts";
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
export type { SpecAdapter } from "./specs/adapter.ts";
export type { KitContext, WorkflowContext } from "./workflows/workflow-context.ts";
