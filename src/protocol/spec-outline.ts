import { z } from "zod";
import { frameworks, lifecycles, specTypes } from "./enums.ts";
import { choiceField, cursorField, type Infer, limitField, textField } from "./fields.ts";
import { indexingSchema } from "./indexing.ts";

/** The query of `GET /api/specs/features`. Filters combine with AND. */
export const specFeatureQuerySchema = z.strictObject({
  framework: choiceField(frameworks).optional(),
  feature: textField(4_096).optional().meta({ description: "Only the feature of this folder or file." }),
  q: textField(1_000)
    .optional()
    .meta({ description: "Words that the name and path of the feature contain." }),
  limit: limitField.optional().meta({ description: "Features per page, 1 to 1,000; default 50." }),
  cursor: cursorField.optional(),
});
export interface SpecFeatureQuery extends Infer<typeof specFeatureQuerySchema> {}

const specFeatureSchema = z
  .object({
    framework: z.enum(frameworks),
    tool: z.string().meta({ description: "The tool of the files, as people write it: Kiro, OpenSpec." }),
    feature: z.string().meta({ description: "The folder or file that specifies the feature." }),
    name: z
      .string()
      .meta({ description: "The last part of the path, with as many parent folders as make it unique." }),
    blocks: z.int(),
    counts_by_type: z.partialRecord(z.enum(specTypes), z.int()),
  })
  .meta({ id: "SpecFeature" });
export interface SpecFeature extends Infer<typeof specFeatureSchema> {}

export const specFeaturePageSchema = z
  .object({
    /** By framework, then path. */
    features: z.array(specFeatureSchema),
    total_count: z.int().meta({ description: "Of all matches, not of the page." }),
    counts_by_framework: z
      .record(z.string(), z.int())
      .meta({ description: "Number of blocks in the project, regardless of the query." }),
    counts_by_tool: z
      .record(z.string(), z.int())
      .meta({ description: "The same by the names of tools, in which OpenSpec is not part of Custom." }),
    next_cursor: z.string().optional(),
    indexing: indexingSchema.optional(),
  })
  .meta({ id: "SpecFeaturePage" });
export interface SpecFeaturePage extends Infer<typeof specFeaturePageSchema> {}

/** The query of `GET /api/specs/outline`. */
export const outlineQuerySchema = z.strictObject({
  framework: choiceField(frameworks),
  feature: textField(4_096).meta({ description: "`feature` of `GET /api/specs/features`." }),
  spec_type: choiceField(specTypes).optional(),
  limit: limitField.optional().meta({ description: "Blocks per page, 1 to 1,000; default 50." }),
  cursor: cursorField.optional(),
});
export interface OutlineQuery extends Infer<typeof outlineQuerySchema> {}

const outlineBlockSchema = z
  .object({
    id: z.string(),
    title: z.string(),
    spec_type: z.enum(specTypes),
    lifecycle: z.enum(lifecycles),
    path: z.string(),
    line: z.int().min(1),
    status: z
      .string()
      .optional()
      .meta({ description: "The status of a task: `open`, `in_progress` or `done`." }),
    criteria: z.int().meta({ description: "Number of acceptance criteria in the block." }),
  })
  .meta({ id: "OutlineBlock" });
export interface OutlineBlock extends Infer<typeof outlineBlockSchema> {}

export const outlinePageSchema = z
  .object({
    /** In path, then position order. */
    blocks: z.array(outlineBlockSchema),
    total_count: z.int().meta({ description: "Of the whole feature, not of the page." }),
    next_cursor: z.string().optional(),
    indexing: indexingSchema.optional(),
  })
  .meta({ id: "OutlinePage" });
export interface OutlinePage extends Infer<typeof outlinePageSchema> {}
