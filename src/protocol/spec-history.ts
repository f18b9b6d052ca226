import { z } from "zod";
import { criterionStates } from "./enums.ts";
import { cursorField, type Infer, limitField, textField, timeField } from "./fields.ts";
import { resultOriginSchema } from "./test-results.ts";

/** The query of `GET /api/specs/history`. */
export const criterionHistoryQuerySchema = z.strictObject({
  criterion: textField(1_024)
    .min(1, "must not be empty")
    .meta({ description: "The key of a criterion, such as checkout#1.2." }),
  after: timeField.optional().meta({ description: "Only what was recorded after this time." }),
  limit: limitField.optional().meta({ description: "Entries per page, 1 to 1,000; default 50." }),
  cursor: cursorField.optional(),
});
export interface CriterionHistoryQuery extends Infer<typeof criterionHistoryQuerySchema> {}

/** How the tests of a criterion ended on a commit. */
const pastStateSchema = z
  .object({
    criterion: z.string(),
    state: z.enum(criterionStates).meta({
      description: "By the results of this commit alone: a test without one makes it `partly_run`.",
    }),
    passed: z
      .int()
      .meta({ description: "Number of places in tests that name the criterion and have passed." }),
    failed: z.int(),
    skipped: z.int(),
    recorded_at: z.string(),
    ...resultOriginSchema.shape,
    flaky: z
      .literal(true)
      .optional()
      .meta({ description: "Set if the criterion both passed and failed on the same files." }),
  })
  .meta({ id: "PastState" });
export interface PastState extends Infer<typeof pastStateSchema> {}

export const criterionHistorySchema = z
  .object({
    history: z.array(pastStateSchema).meta({
      description: "Newest first. Reports that repeat the state of the same day have no entry.",
    }),
    next_cursor: z.string().optional(),
  })
  .meta({ id: "CriterionHistory" });
export interface CriterionHistory extends Infer<typeof criterionHistorySchema> {}

/** A criterion that passed on a commit, and does not pass now. */
export interface WorseCriterion {
  /** The key: `checkout#1.2`. */
  readonly criterion: string;
  readonly state: PastState["state"];
  readonly path: string;
  readonly line: number;
}

/** The present results against those of a commit. */
export interface WorseReport {
  /** The commit that the results are compared with. */
  readonly commit: string;
  /** In path, then line order. */
  readonly worse: readonly WorseCriterion[];
  /** How many criteria passed there. */
  readonly passed: number;
  /** Keys of criteria that passed there, and that no spec has any more. */
  readonly gone: readonly string[];
  /** How many present results are older than their test, the code or the criterion. */
  readonly stale: number;
}
