import { z } from "zod";
import { reportFormats } from "./enums.ts";
import { choiceField, type Infer, needed } from "./fields.ts";

/** The body of `POST /api/specs/results`. */
export const testReportSchema = z.strictObject({
  format: choiceField(reportFormats)
    .optional()
    .meta({ description: "Default: XML is `junit`, JSON is `vitest`, whose format is Jest's too." }),
  report: z
    .union([z.string().min(1, "must not be empty"), z.record(z.string(), z.unknown())], {
      error: needed("must be the text of a report, or the object of a JSON report"),
    })
    .meta({ description: "The report as its file has it, or the object of a JSON report." }),
});
export interface TestReport extends Infer<typeof testReportSchema> {}

/** The results that were taken from a report. */
export const recordedResultsSchema = z
  .object({
    format: z.enum(reportFormats),
    recorded_at: z.string(),
    files: z.int().meta({ description: "Test files of the project whose results were replaced." }),
    tests: z.int(),
    passed: z.int(),
    failed: z.int(),
    skipped: z.int(),
    unknown_tests: z.int().meta({ description: "Tests of files that the project does not have; left out." }),
    unknown_files: z.array(z.string()).meta({ description: "As the report names them, the first 20." }),
  })
  .meta({ id: "RecordedResults" });
export interface RecordedResults extends Infer<typeof recordedResultsSchema> {}

/** How the tests at a place ended when they last ran. */
export const lastResultSchema = z
  .object({
    status: z.enum(["passed", "failed", "skipped"]).meta({ description: "`failed` where one of them has." }),
    tests: z.int().meta({ description: "How many tests stand behind it: those of a table are several." }),
    recorded_at: z.string(),
    duration_ms: z.number().optional(),
    message: z
      .string()
      .optional()
      .meta({ description: "Of the first that failed, cut at 2,000 characters." }),
  })
  .meta({ id: "LastResult" });
export interface LastResult extends Infer<typeof lastResultSchema> {}
