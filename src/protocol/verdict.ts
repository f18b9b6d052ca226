import { z } from "zod";
import { type Infer, textField } from "./fields.ts";

/** How a verdict ends: `ask` leaves the decision to a person, `broken` says that the tests could not be run. */
export const verdictEnds = ["closed", "refused", "ask", "broken"] as const;
export type VerdictEnd = (typeof verdictEnds)[number];

/**
 * The checks of a verdict, in the order in which they are made.
 *
 * - `no-change`: something other than specs and documents was changed.
 * - `broken`: the tests run, on the base and on the change.
 * - `regression`: what passed on the base passes on the new code, in the words of the base.
 * - `test-changed`, `test-removed`: a test of the base that passed was changed so that its old words fail, or is gone or skipped.
 * - `no-criteria`: the change is about at least one criterion.
 * - `no-test`: a test names the criterion. `not-run`, `failing`: it ran, and passed.
 * - `original-test`: a test of the criterion that failed on the base passes in its old words.
 * - `flaky`: the tests of the criterion end the same way twice.
 * - `passes-without`: without the change, one of them does not pass.
 * - `reads-source`: they do not depend on the spaces of the code.
 * - `asserts-nothing`, `no-faults`: they notice a fault in the changed code by an assertion; faults can be put into it.
 * - `rule-broken`: the checks of rules, as the base has them, accept the changed files. `rule-unclear`: they run, and the change is not also
 *   one of the rule or its check.
 */
export const verdictChecks = [
  "no-change",
  "broken",
  "regression",
  "test-changed",
  "test-removed",
  "no-criteria",
  "no-test",
  "not-run",
  "failing",
  "original-test",
  "flaky",
  "passes-without",
  "reads-source",
  "asserts-nothing",
  "no-faults",
  "rule-broken",
  "rule-unclear",
] as const;
export type VerdictCheck = (typeof verdictChecks)[number];

const verdictReasonSchema = z.object({
  check: z.enum(verdictChecks),
  end: z.enum(["refused", "ask", "broken"]).meta({ description: "The end that this reason leads to." }),
  message: z.string(),
  criterion: z.string().optional(),
  rule: z.string().optional().meta({ description: "The name of a rule, such as AGENTS.md#money." }),
  path: z.string().optional().meta({ description: "POSIX, relative to the project root." }),
  line: z.int().min(1).optional(),
});
export interface VerdictReason extends Infer<typeof verdictReasonSchema> {}

const judgedTestSchema = z.object({ path: z.string(), line: z.int().min(1), titles: z.array(z.string()) });
export interface JudgedTest extends Infer<typeof judgedTestSchema> {}

const faultCountSchema = z.object({
  tried: z.int(),
  noticed: z.int().meta({ description: "A test failed by an assertion." }),
  crashed: z.int().meta({ description: "A test failed, but not by an assertion." }),
  survived: z.int().meta({ description: "All tests passed." }),
  invalid: z.int().meta({ description: "The tests could not be loaded." }),
});
export interface FaultCount extends Infer<typeof faultCountSchema> {}

const judgedCriterionSchema = z.object({
  id: z.string(),
  tests: z.array(judgedTestSchema),
  text_changed: z
    .literal(true)
    .optional()
    .meta({ description: "Set if the change is also one of the criterion's text." }),
  faults: faultCountSchema
    .optional()
    .meta({ description: "Absent if an earlier check has decided the verdict." }),
});
export interface JudgedCriterion extends Infer<typeof judgedCriterionSchema> {}

/** The kinds of runs, in their order. */
export const verdictRuns = ["base", "head", "old_tests", "again", "old_code", "respaced", "faults"] as const;

const testRunSchema = z.object({
  name: z
    .enum(verdictRuns)
    .meta({ description: "`old_tests`: the new code with the tests of the base; `old_code`: the reverse." }),
  runs: z.int(),
  tests: z.int(),
  failed: z.int(),
  duration_ms: z.number(),
});
export interface VerdictRun extends Infer<typeof testRunSchema> {}

/** The kinds of runs in words that follow "Running tests:". */
export const verdictRunTexts: Readonly<Record<VerdictRun["name"], string>> = {
  base: "before the change",
  head: "with the change",
  old_tests: "the old tests on the new code",
  again: "once more",
  old_code: "the new tests on the old code",
  respaced: "with other spaces in the code",
  faults: "with a fault in the code",
};

const name = textField(300).min(1, "must not be empty");

/** The question to a judge: the payload of the workflow `kit.verify`, and the arguments of the MCP tool `verify_specs`. */
export const verifyRequestSchema = z.strictObject({
  feature: name.exactOptional().meta({ description: "Only criteria of this feature, such as checkout." }),
  task: name.exactOptional().meta({
    description: "The criteria of this task: its number in the feature, or its id.",
  }),
  criteria: z
    .array(name)
    .min(1, "must name a criterion")
    .max(500)
    .exactOptional()
    .meta({ description: "Exactly these criteria, by their keys, such as checkout#1.2." }),
  since: name.exactOptional().meta({
    description:
      "The change is what differs from the merge base with this revision of Git. Default: the main branch.",
  }),
});
export interface VerifyRequest extends Infer<typeof verifyRequestSchema> {}

/** Whether a change does what the specs say, decided by running tests. */
export const verdictSchema = z
  .object({
    end: z.enum(verdictEnds),
    base: z.string().meta({ description: "The commit that the change is compared with." }),
    tree: z.string().meta({ description: "The tree of Git that was judged." }),
    criteria: z.array(judgedCriterionSchema),
    reasons: z
      .array(verdictReasonSchema)
      .meta({ description: "In the order of the checks; empty if closed." }),
    notes: z
      .array(z.string())
      .meta({ description: "What the verdict does not depend on, but a reader should know." }),
    changed: z
      .array(z.string())
      .meta({ description: "The files that differ, relative to the project root." }),
    runner: z.string().meta({
      description: "The command that ran the tests, without its files; empty if none had to run.",
    }),
    isolated: z.boolean().meta({ description: "Whether the system isolated the tests from the machine." }),
    runs: z.array(testRunSchema),
    duration_ms: z.number(),
  })
  .meta({ id: "Verdict" });
export interface Verdict extends Infer<typeof verdictSchema> {}
