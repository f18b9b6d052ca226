import { z } from "zod";
import { diagnosticSchema } from "./diagnostic.ts";
import { coverageEvidence, criterionStates, staleCauses } from "./enums.ts";
import { cursorField, type Infer, limitField, textField } from "./fields.ts";
import { indexingSchema } from "./indexing.ts";
import { lastResultSchema } from "./test-results.ts";

export type { CoverageEvidence } from "./enums.ts";

/** The query of `GET /api/specs/coverage`. */
export const coverageQuerySchema = z.strictObject({
  feature: textField(200).optional().meta({ description: "Only this feature, such as checkout." }),
  spec: textField(1_024).optional().meta({ description: "Only the criteria of this spec block, by its id." }),
  file: textField(1_024).optional().meta({
    description: "Only the criteria that this test file names, by its path from the root of the project.",
  }),
  show: z
    .enum(["all", ...criterionStates, "not_passing", "stale"])
    .optional()
    .meta({
      description:
        "`uncovered`: only criteria that no test names; `never_run`, `partly_run`, `passing`, `failing`: by the last results of their tests; `not_passing`: all but the passing ones; `stale`: criteria with a result that is older than the test, the code or the criterion. Default: `all`.",
    }),
  limit: limitField.optional().meta({ description: "Criteria per page, 1 to 1,000; default 50." }),
  cursor: cursorField.optional(),
});
export interface CoverageQuery extends Infer<typeof coverageQuerySchema> {}

const line = z.int().min(1);

/** A change that happened after a test ran. */
const staleResultSchema = z.object({
  cause: z.enum(staleCauses).meta({
    description:
      "`test`: the test's file; `code`: a file named by the criterion's block or by one of its tasks or designs; `criterion`: the criterion's text.",
  }),
  path: z.string(),
});
export interface StaleResult extends Infer<typeof staleResultSchema> {}

/** A place in a test file that names a criterion. */
const criterionTestSchema = z.object({
  /** POSIX, relative to the project root. */
  path: z.string(),
  /** 1-based; 1 if the spec names the whole file. */
  line,
  evidence: z.enum(coverageEvidence),
  titles: z.array(z.string()).optional().meta({
    description:
      "The titles of the tests at the line, as their file has them; empty if the line belongs to none; absent if kit finds no titles in the file.",
  }),
  /** The line of the test, trimmed and at most 200 characters; for `path`, the block that names it. */
  quote: z.string(),
  /** Set if the test names the whole requirement and not only this criterion. */
  whole_requirement: z.literal(true).optional(),
  /** Absent if no report contains the test, or if it was renamed since. */
  result: lastResultSchema.optional(),
  stale: z.array(staleResultSchema).optional().meta({
    description: "Changes since the result was submitted; absent if there are none.",
  }),
});
export interface CriterionTest extends Infer<typeof criterionTestSchema> {}

/** A test whose words resemble a criterion, or that a finished task names. Never counts as coverage. */
const criterionSuggestionSchema = z.object({
  path: z.string(),
  line,
  /** 0 to 1: how alike the words of criterion and test title are, rare words counting more; 1 if a finished task names the test. */
  score: z.number(),
  quote: z.string(),
});
export interface CriterionSuggestion extends Infer<typeof criterionSuggestionSchema> {}

/** One acceptance criterion, and the tests that name it. */
const criterionCoverageSchema = z.object({
  id: z.string().meta({ description: "`<feature>#<number>`: the key to put into a test." }),
  feature: z.string(),
  number: z.string(),
  /** The block that holds the criterion. */
  spec_id: z.string(),
  path: z.string(),
  line,
  text: z.string(),
  state: z.enum(criterionStates).meta({
    description:
      "`never_run`: tests name the criterion, but no report contains their results; `partly_run`: some passed, others were skipped or never ran; `passing`: all of them passed.",
  }),
  stale: z.literal(true).optional().meta({
    description: "Set if a counted result is older than the test, the code or the criterion.",
  }),
  /** Empty if no test names the criterion. */
  tests: z.array(criterionTestSchema),
  /** Best first, at most three; only for criteria without a test. */
  suggestions: z.array(criterionSuggestionSchema),
});
export interface CriterionCoverage extends Infer<typeof criterionCoverageSchema> {}

const coverageCountSchema = z.object({
  criteria: z.int(),
  covered: z.int(),
  covered_by_requirement: z
    .int()
    .meta({ description: "Covered criteria that tests name only through their requirement." }),
  uncovered: z.int(),
  passing: z.int(),
  failing: z.int(),
  never_run: z.int(),
  partly_run: z.int(),
  stale: z.int().meta({ description: "Criteria with a stale result that counts." }),
  suggested: z
    .int()
    .meta({ description: "Uncovered criteria for which there is a test with similar words." }),
});
export interface CoverageCount extends Infer<typeof coverageCountSchema> {}

const featureCoverageSchema = z.object({
  feature: z.string(),
  /** The folder or file that specifies the feature. */
  path: z.string(),
  ...coverageCountSchema.shape,
});
export interface FeatureCoverage extends Infer<typeof featureCoverageSchema> {}

/** A report with one page of its criteria; all other fields describe the whole report. */
export const coveragePageSchema = z
  .object({
    /** In path, then line order. */
    criteria: z.array(criterionCoverageSchema),
    total_count: z.int().meta({ description: "Of the whole list, not of the page." }),
    next_cursor: z.string().optional(),
    totals: coverageCountSchema,
    by_feature: z.array(featureCoverageSchema),
    test_files: z.int(),
    /** Tests that name a criterion that no spec has, and test files that could not be read. */
    diagnostics: z.array(diagnosticSchema),
    indexing: indexingSchema.optional(),
  })
  .meta({ id: "CoveragePage" });
export interface CoveragePage extends Infer<typeof coveragePageSchema> {}

export type CoverageReport = Omit<CoveragePage, "total_count" | "next_cursor" | "indexing">;
