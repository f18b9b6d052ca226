/**
 * `kit/project`: what takes more than the index to answer: tests, Git history, changed files. A project is
 * opened with `openProject` of `kit`.
 */
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
export type { StaleAcceptance, StaleFile, StaleReport, StaleSpec } from "../protocol/stale.ts";
export { type CoverageOptions, specCoverage } from "./features/coverage.ts";
export { acceptStale, type StaleOptions, staleSpecs } from "./features/stale.ts";
export {
  type ChangedFile,
  type ChangedFilesOptions,
  readChangedFiles,
  toChangedPaths,
} from "./scan/git/changed-files.ts";
