import { z } from "zod";
import { reportFormats } from "./enums.ts";
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
});
export interface TestReport extends Infer<typeof testReportSchema> {}

/** The results that kit stored from a report. */
export const recordedResultsSchema = z
  .object({
    format: z.enum(reportFormats),
    recorded_at: z.string(),
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
    status: z
      .enum(["passed", "failed", "skipped"])
      .meta({ description: "`failed` if one of the tests failed." }),
    tests: z.int().meta({ description: "Number of tests in the result: a table of cases holds several." }),
    recorded_at: z.string(),
    duration_ms: z.number().optional(),
    message: z
      .string()
      .optional()
      .meta({ description: "Message of the first failed test, cut at 2,000 characters." }),
  })
  .meta({ id: "LastResult" });
export interface LastResult extends Infer<typeof lastResultSchema> {}
