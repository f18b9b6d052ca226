import { z } from "zod";
import { diagnosticRules } from "./enums.ts";
import type { Infer } from "./fields.ts";
import { indexingSchema } from "./indexing.ts";

export type { DiagnosticRule } from "./enums.ts";

/** Something wrong with an input file, said once, with the place to look at. */
export const diagnosticSchema = z
  .object({
    severity: z.enum(["error", "warning"]),
    rule: z.enum(diagnosticRules),
    /** A stable finer name where one rule has several causes, such as `frontmatter_unterminated`. */
    code: z.string().optional(),
    message: z.string(),
    /** POSIX, relative to the project root. */
    path: z.string(),
    /** 1-based. */
    line: z.int().min(1).optional(),
    /** The id of the block or guideline, where there is one. */
    id: z.string().optional(),
    field: z.string().optional(),
  })
  .meta({ id: "Diagnostic" });
export interface Diagnostic extends Infer<typeof diagnosticSchema> {}

/** The reply of `GET /api/diagnostics`. */
export const diagnosticsSchema = z.object({
  diagnostics: z.array(diagnosticSchema),
  indexing: indexingSchema.optional(),
});

export const validationResultSchema = z
  .object({
    valid: z.boolean().meta({ description: "True when no diagnostic is an error." }),
    diagnostics: z.array(diagnosticSchema),
  })
  .meta({ id: "ValidationResult" });
