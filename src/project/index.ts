/**
 * `kit/project`: what takes the whole repository to answer, its Git history and its tests included.
 */
export type {
  CoverageCount,
  CoverageEvidence,
  CoverageReport,
  CriterionCoverage,
  CriterionSuggestion,
  CriterionTest,
  FeatureCoverage,
} from "../protocol/coverage.ts";
export type { StaleAcceptance, StaleFile, StaleReport, StaleSpec } from "../protocol/stale.ts";
export { type CoverageOptions, specCoverage } from "./coverage.ts";
export {
  type ChangedFile,
  type ChangedFilesOptions,
  readChangedFiles,
  toChangedPaths,
} from "./git/changed-files.ts";
export { openProject } from "./open-project.ts";
export type {
  OpenProjectOptions,
  Project,
  ProjectConfig,
  ProjectGuidelines,
  ProjectSpecs,
  RefreshOptions,
  ScanSummary,
} from "./project.ts";
export { acceptStale, type StaleOptions, staleSpecs } from "./stale.ts";
