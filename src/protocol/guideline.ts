import { z } from "zod";
import { sourceTypes } from "./enums.ts";
import type { Infer } from "./fields.ts";
import { indexingSchema } from "./indexing.ts";
import { fileChangeSchema } from "./sync.ts";

export type { ConversionFormat, ExportFormat, SourceType } from "./enums.ts";

/** One coding rule of a repository. */
export const guidelineSchema = z
  .object({
    /** First 16 hex digits of SHA-256 over `<source_file>:<title>`; see `guidelines/guideline-record.ts`. */
    id: z.string(),
    title: z.string(),
    content: z.string(),
    source_type: z.enum(sourceTypes),
    source_file: z.string().meta({ description: "POSIX, relative to the project root." }),
    aliases: z
      .array(z.string())
      .optional()
      .meta({ description: "Other paths of that file: links inside the project that lead to it." }),
    /** Interpreted by the rules of the source's tool. */
    file_pattern: z.string().optional().meta({ description: "Globs, joined by commas." }),
    tags: z.array(z.string()),
    is_sample: z.boolean(),
    is_ignored: z
      .literal(true)
      .optional()
      .meta({ description: "Set if Git ignores the file: other clones do not have it." }),
  })
  .meta({ id: "Guideline" });
export interface Guideline extends Infer<typeof guidelineSchema> {}

export const guidelineListSchema = z
  .object({
    guidelines: z.array(guidelineSchema),
    total_count: z.int().meta({ description: "Of all matches, not of the page." }),
    counts_by_source: z.record(z.string(), z.int()),
    next_cursor: z.string().optional(),
    indexing: indexingSchema.optional(),
  })
  .meta({ id: "GuidelineList" });
export interface GuidelineList extends Infer<typeof guidelineListSchema> {}

export const conversionResultSchema = z
  .object({
    filename: z.string(),
    content: z.string(),
    frontmatter: z.record(z.string(), z.unknown()),
    source_id: z.string(),
    /** One sentence each. */
    losses: z.array(z.string()).meta({ description: "Things that the target format cannot express." }),
    /** Project-relative. */
    change: fileChangeSchema.optional().meta({
      description: "Only in a preview: the file before and after the write.",
    }),
    written_to: z.string().optional().meta({ description: "Only if `preview` was false." }),
  })
  .meta({ id: "ConversionResult" });
export interface ConversionResult extends Infer<typeof conversionResultSchema> {}

export const exportResultSchema = z
  .object({ filename: z.string(), content: z.string() })
  .meta({ id: "ExportResult" });
export interface ExportResult extends Infer<typeof exportResultSchema> {}
