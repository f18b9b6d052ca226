/**
 * What makes a test count for a criterion.
 *
 * - `path`: the spec names the test file, or the test file names the spec file.
 * - `key`: the test holds the criterion's key, `auth#1.2`.
 * - `number`: the test names the criterion's number (`Requirement 1.2`, `FR-003`) and is scoped to
 *   the feature, or the number belongs to one feature only.
 */
export const coverageEvidence = ["path", "key", "number"] as const;
export type CoverageEvidence = (typeof coverageEvidence)[number];

/** A place in a test file that names a criterion. */
export interface CriterionTest {
  /** POSIX, relative to the project root. */
  readonly path: string;
  /** 1-based. */
  readonly line: number;
  readonly evidence: CoverageEvidence;
  /** The line as it stands in the file, trimmed and at most 200 characters. */
  readonly quote: string;
  /** Set where the test names the whole requirement and not this criterion alone. */
  readonly whole_requirement?: true;
}

/** A test whose words resemble a criterion. Never counts as coverage. */
export interface CriterionSuggestion {
  readonly path: string;
  readonly line: number;
  /** 0 to 1: how much of the criterion's wording the test's title holds. */
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
  /** Without a test, but with a suggestion. */
  readonly suggested: number;
  readonly uncovered: number;
}

export interface CoverageReport {
  /** In path, then line order. */
  readonly criteria: readonly CriterionCoverage[];
  readonly totals: CoverageCount;
  readonly by_feature: readonly ({ readonly feature: string; readonly path: string } & CoverageCount)[];
  readonly test_files: number;
  /** Test files left out, with the reason: too large, binary, unreadable. */
  readonly skipped: readonly { readonly path: string; readonly reason: string }[];
}
