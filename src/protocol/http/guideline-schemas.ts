import { z } from "zod";
import {
  type ConversionResult,
  conversionFormats,
  type ExportResult,
  exportFormats,
  type Guideline,
  type GuidelineList,
  sourceTypes,
} from "../guideline.ts";
import type { ConvertRequest, ExportRequest, GuidelineQuery } from "../guideline-query.ts";
import {
  choiceField,
  cursorField,
  indexingSchema,
  limitField,
  needed,
  projectPathField,
  textField,
} from "./fields.ts";

/** The query of `GET /api/guidelines`. */
export const guidelineQuerySchema: z.ZodType<GuidelineQuery> = z.strictObject({
  source: choiceField(sourceTypes).exactOptional().meta({ description: "Where the guideline comes from." }),
  file: projectPathField
    .exactOptional()
    .meta({ description: "Only guidelines that apply to this file; it need not exist." }),
  q: textField(1_000)
    .exactOptional()
    .meta({ description: "Words that must all occur in title or content, in any case." }),
  limit: limitField
    .exactOptional()
    .meta({ description: "Guidelines per page, 1 to 1,000; without it, all." }),
  cursor: cursorField.exactOptional(),
});

export const convertRequestSchema: z.ZodType<ConvertRequest> = z.strictObject({
  guideline_id: textField(128).min(1, "must not be empty"),
  format: choiceField(conversionFormats),
  preview: z
    .boolean({ error: needed("must be true or false") })
    .exactOptional()
    .meta({ description: "Default true: nothing is written." }),
  overwrite: z
    .boolean({ error: needed("must be true or false") })
    .exactOptional()
    .meta({ description: "Default false: a steering file with other content is a conflict." }),
});

export const exportRequestSchema: z.ZodType<ExportRequest> = z.strictObject({
  format: choiceField(exportFormats),
});

export const guidelineSchema: z.ZodType<Guideline> = z
  .object({
    id: z.string(),
    title: z.string(),
    content: z.string(),
    source_type: z.enum(sourceTypes),
    source_file: z.string().meta({ description: "POSIX, relative to the project root." }),
    aliases: z
      .array(z.string())
      .exactOptional()
      .meta({ description: "Other names of that file: links inside the project that lead to it." }),
    file_pattern: z.string().exactOptional().meta({ description: "Globs, joined by commas." }),
    tags: z.array(z.string()),
    is_sample: z.boolean(),
  })
  .meta({ id: "Guideline" });

export const guidelineListSchema: z.ZodType<GuidelineList> = z
  .object({
    guidelines: z.array(guidelineSchema),
    total_count: z.int().meta({ description: "Of the whole match, not of the page." }),
    counts_by_source: z.record(z.string(), z.int()),
    next_cursor: z.string().exactOptional(),
    indexing: indexingSchema,
  })
  .meta({ id: "GuidelineList" });

export const conversionResultSchema: z.ZodType<ConversionResult> = z
  .object({
    filename: z.string(),
    content: z.string(),
    frontmatter: z.record(z.string(), z.unknown()),
    source_id: z.string(),
    losses: z.array(z.string()).meta({ description: "What the target format cannot express." }),
    written_to: z.string().exactOptional().meta({ description: "Only when `preview` was false." }),
  })
  .meta({ id: "ConversionResult" });

export const exportResultSchema: z.ZodType<ExportResult> = z
  .object({ filename: z.string(), content: z.string() })
  .meta({ id: "ExportResult" });
