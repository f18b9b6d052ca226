import { z } from "zod";
import { commitPattern, reportFormats, resultSources } from "./enums.ts";
import { choiceField, type Infer, needed } from "./fields.ts";

/** The body of `POST /api/specs/results`. */
export const testReportSchema = z.strictObject({
  format: choiceField(reportFormats)
    .optional()
    .meta({ description: "Default: `junit` for XML, `vitest` for JSON (Jest uses the same format)." }),
  report: z
    .union([z.string().min(1, "must not be empty"), z.record(z.string(), z.unknown())], {
      error: needed("must be the text of a report, or the object of a JSON report"),
    })
    .meta({ description: "The text of the report file, or the object of a JSON report." }),
  commit: z
    .string()
    .regex(commitPattern, "must be the 7 to 64 hexadecimal digits of a commit")
    .optional()
    .meta({ description: "The commit that the tests ran on. Default: the commit of the server's folder." }),
});
export interface TestReport extends Infer<typeof testReportSchema> {}

/** Where results come from. */
export const resultOriginSchema = z.object({
  source: z.enum(resultSources).meta({
    description:
      "`observed`: the program that recorded the result has run the test itself; `submitted`: a report was handed in, which any program can write.",
  }),
  commit: z.string().optional().meta({
    description:
      "The commit that the tests ran on; absent outside of Git, and for results of earlier versions of kit.",
  }),
  tree: z
    .string()
    .optional()
    .meta({ description: "The tree of Git that the tests ran on; absent if it is not known." }),
  dirty: z
    .literal(true)
    .optional()
    .meta({ description: "Set if files of the project differed from the commit." }),
  by: z.string().optional().meta({ description: "The id of the principal that sent the report." }),
});
export interface ResultOrigin extends Infer<typeof resultOriginSchema> {}

/** The results that kit stored from a report. */
export const recordedResultsSchema = z
  .object({
    format: z.enum(reportFormats),
    recorded_at: z.string(),
    ...resultOriginSchema.shape,
    files: z.int().meta({ description: "Number of test files of the project whose results were replaced." }),
    tests: z.int(),
    passed: z.int(),
    failed: z.int(),
    skipped: z.int(),
    unknown_tests: z
      .int()
      .meta({ description: "Number of ignored tests: the project does not have their files." }),
    unknown_files: z
      .array(z.string())
      .meta({ description: "The first 20 paths of such files, in the report's spelling." }),
  })
  .meta({ id: "RecordedResults" });
export interface RecordedResults extends Infer<typeof recordedResultsSchema> {}

/** The last result of the tests at a place. */
export const lastResultSchema = z
  .object({
    status: z.enum(["passed", "failed", "skipped"]).meta({
      description:
        "`failed` if one of the tests failed, `passed` if all of them passed, otherwise `skipped`.",
    }),
    tests: z.int().meta({ description: "Number of tests in the result: a table of cases holds several." }),
    skipped: z
      .int()
      .optional()
      .meta({ description: "Number of these that were skipped; absent if none was." }),
    recorded_at: z.string(),
    ...resultOriginSchema.shape,
    duration_ms: z.number().optional(),
    message: z
      .string()
      .optional()
      .meta({ description: "Message of the first failed test, cut at 2,000 characters." }),
  })
  .meta({ id: "LastResult" });
export interface LastResult extends Infer<typeof lastResultSchema> {}
