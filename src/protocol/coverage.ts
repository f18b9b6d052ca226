import type { Diagnostic } from "./diagnostic.ts";
import type { IndexingProgress } from "./indexing.ts";

/**
 * What makes a test count for a criterion.
 *
 * - `path`: the spec names the test file.
 * - `key`: the test holds the criterion's key, `auth#1.2`, or the id of its block.
 * - `number`: the test names the number (`Requirement 1.2`, `FR-003`) and belongs to the feature, or
 *   the number belongs to one feature only.
 */
export const coverageEvidence = ["path", "key", "number"] as const;
export type CoverageEvidence = (typeof coverageEvidence)[number];

/** A place in a test file that names a criterion. */
export interface CriterionTest {
  /** POSIX, relative to the project root. */
  readonly path: string;
  /** 1-based; 1 where the spec names the whole file. */
  readonly line: number;
  readonly evidence: CoverageEvidence;
  /** The line of the test, trimmed and at most 200 characters; for `path`, the block that names it. */
  readonly quote: string;
  /** Set where the whole requirement is named and not this criterion alone. */
  readonly whole_requirement?: true;
}

/** A test whose words resemble a criterion. Never counts as coverage. */
export interface CriterionSuggestion {
  readonly path: string;
  readonly line: number;
  /** 0 to 1: how alike the words of criterion and test title are, rare words counting more. */
  readonly score: number;
  readonly quote: string;
}

/** One acceptance criterion, and the tests that name it. */
export interface CriterionCoverage {
  /** `<feature>#<number>`, such as `auth#1.2`: the key to put into a test. */
  readonly id: string;
  readonly feature: string;
  readonly number: string;
  /** The block that holds the criterion. */
  readonly spec_id: string;
  readonly path: string;
  readonly line: number;
  readonly text: string;
  /** Empty: no test names the criterion. */
  readonly tests: readonly CriterionTest[];
  /** Best first, at most three; only for criteria without a test. */
  readonly suggestions: readonly CriterionSuggestion[];
}

export interface CoverageCount {
  readonly criteria: number;
  readonly covered: number;
  /** Of the covered ones, those that tests name only through their whole requirement. */
  readonly covered_by_requirement: number;
  readonly uncovered: number;
  /** Of the uncovered ones, those with a suggestion. */
  readonly suggested: number;
}

export interface FeatureCoverage extends CoverageCount {
  readonly feature: string;
  /** The folder or file that the feature is specified in. */
  readonly path: string;
}

export interface CoverageReport {
  /** In path, then line order. */
  readonly criteria: readonly CriterionCoverage[];
  readonly totals: CoverageCount;
  readonly by_feature: readonly FeatureCoverage[];
  readonly test_files: number;
  /** Tests that name a criterion which no spec has, and test files that could not be read. */
  readonly diagnostics: readonly Diagnostic[];
}

/** Which criteria of a report are asked for. */
export interface CoverageQuery {
  /** Only this feature, by its label (`checkout`). */
  readonly feature?: string;
  /** `uncovered`: only criteria that no test names. Default: `all`. */
  readonly show?: "all" | "uncovered";
  /** Criteria per page, 1 to 1,000; default 50. */
  readonly limit?: number;
  /** `next_cursor` of the page before. */
  readonly cursor?: string;
}

/** A report with one page of its criteria; all else is of the whole. */
export interface CoveragePage extends CoverageReport {
  /** How many criteria the list has in all. */
  readonly total_count: number;
  readonly next_cursor?: string;
  readonly indexing?: IndexingProgress;
}
