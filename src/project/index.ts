import "../base/require-node.ts";

export type {
  CoverageCount,
  CoverageEvidence,
  CoverageReport,
  CriterionCoverage,
  CriterionSuggestion,
  CriterionTest,
  FeatureCoverage,
} from "../protocol/coverage.ts";
/**
 * `kit/project`: the types of `openProject` in `kit`, and functions that need more than the index: tests, Git history, changed
 * files.
 */
export type {
  CriterionHistory,
  CriterionHistoryQuery,
  PastState,
  WorseCriterion,
  WorseReport,
} from "../protocol/spec-history.ts";
export type { StaleAcceptance, StaleFile, StaleReport, StaleSpec } from "../protocol/stale.ts";
export type { LastResult, RecordedResults, ResultOrigin } from "../protocol/test-results.ts";
export { isTestPath } from "../specs/model/mentions.ts";
export { type CoverageOptions, specCoverage } from "./features/coverage.ts";
export {
  type CriterionReference,
  namedCriteria,
  type ReferenceOptions,
} from "./features/criteria-links.ts";
export { specOverlaps } from "./features/overlap.ts";
export type { Overlap, OverlapOptions, OverlapPart, OverlapReport } from "./features/overlap-sides.ts";
export { criterionHistory, worseCriteria } from "./features/spec-history.ts";
export { acceptStale, type StaleOptions, staleSpecs } from "./features/stale.ts";
export type {
  OpenProjectOptions,
  Project,
  ProjectGuidelines,
  ProjectSpecs,
  RefreshOptions,
  ScanSummary,
} from "./project.ts";
export type { ProjectConfig } from "./project-config.ts";
export {
  type RecordOptions,
  type ReportedTest,
  readReport,
  recordResults,
} from "./results/record-results.ts";
export {
  type ChangedFile,
  type ChangedFilesOptions,
  readChangedFiles,
  toChangedPaths,
} from "./scan/git/git-state.ts";
export type { FileDates } from "./store/date-rows.ts";
