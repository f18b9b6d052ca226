import { z } from "zod";
import { diagnosticRules, frameworks } from "./enums.ts";
import { choiceField, cursorField, type Infer, limitField, textField } from "./fields.ts";
import { indexingSchema } from "./indexing.ts";

export type { DiagnosticRule } from "./enums.ts";

/** A fault in an input file, and its place. Each fault is reported once. */
export const diagnosticSchema = z
  .object({
    severity: z.enum(["error", "warning"]),
    rule: z.enum(diagnosticRules),
    /** A stable, more specific name if a rule has several causes, such as `frontmatter_unterminated`. */
    code: z.string().optional(),
    message: z.string(),
    /** POSIX, relative to the project root. */
    path: z.string(),
    /** 1-based. */
    line: z.int().min(1).optional(),
    /** 1-based, in UTF-16 units. */
    column: z.int().min(1).optional(),
    /** The column after the last faulty character, on the same line. */
    end_column: z.int().min(2).optional(),
    /** The id of the block or guideline, if there is one. */
    id: z.string().optional(),
    field: z.string().optional(),
    /** The text that mends the fault, in place of the text from `column` to `end_column`. */
    fix: z.object({ text: z.string() }).optional(),
    /** The second place of a finding about two places: the copy, the contradicting sentence. */
    other: z.object({ path: z.string(), line: z.int().min(1).optional() }).optional(),
  })
  .meta({ id: "Diagnostic" });
export interface Diagnostic extends Infer<typeof diagnosticSchema> {}

/** The query of `GET /api/specs/diagnostics`. Filters combine with AND. */
export const diagnosticQuerySchema = z.strictObject({
  severity: choiceField(["error", "warning"]).optional(),
  rule: choiceField(diagnosticRules).optional(),
  path: textField(4_096).optional().meta({ description: "A file, or a folder and everything below it." }),
  framework: choiceField(frameworks).optional().meta({ description: "The framework of the faulty file." }),
  id: textField(1_024).optional().meta({ description: "Only diagnostics of this spec block." }),
  limit: limitField
    .optional()
    .meta({ description: "Diagnostics per page, 1 to 1,000; without it, all of them." }),
  cursor: cursorField.optional(),
});
export interface DiagnosticQuery extends Infer<typeof diagnosticQuerySchema> {}

export const diagnosticPageSchema = z
  .object({
    /** In path, then line order. */
    diagnostics: z.array(diagnosticSchema),
    total_count: z.int().meta({ description: "Of all matches, not of the page." }),
    counts_by_severity: z.object({ error: z.int(), warning: z.int() }).meta({
      description: "Of the whole project, regardless of the query; the same holds for the other counts.",
    }),
    counts_by_rule: z.record(z.string(), z.int()),
    counts_by_framework: z.record(z.string(), z.int()),
    next_cursor: z.string().optional(),
    indexing: indexingSchema.optional(),
  })
  .meta({ id: "DiagnosticPage" });
export interface DiagnosticPage extends Infer<typeof diagnosticPageSchema> {}

/** The reply of `GET /api/guidelines/lint`. */
export const diagnosticsSchema = z.object({
  diagnostics: z.array(diagnosticSchema),
  indexing: indexingSchema.optional(),
});

export const validationResultSchema = z
  .object({
    valid: z.boolean().meta({ description: "True if no diagnostic is an error." }),
    diagnostics: z.array(diagnosticSchema),
  })
  .meta({ id: "ValidationResult" });
