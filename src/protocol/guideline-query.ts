import { z } from "zod";
import { conversionFormats, type ExplainTool, explainTools, exportFormats, sourceTypes } from "./enums.ts";
import {
  choiceField,
  cursorField,
  type Infer,
  limitField,
  needed,
  projectPathField,
  textField,
} from "./fields.ts";
import type { Guideline } from "./guideline.ts";
import { indexingSchema } from "./indexing.ts";
import { changeDigestField } from "./sync.ts";

export type { ExplainTool } from "./enums.ts";

/** The query of `GET /api/guidelines`. Filters combine with AND. */
export const guidelineQuerySchema = z.strictObject({
  source: choiceField(sourceTypes).optional().meta({ description: "Where the guideline comes from." }),
  file: projectPathField
    .optional()
    .meta({ description: "Only guidelines that apply to this file; it need not exist." }),
  q: textField(1_000)
    .optional()
    .meta({ description: "Words that must all occur in title or content, in any case." }),
  limit: limitField.optional().meta({ description: "Guidelines per page, 1 to 1,000; without it, all." }),
  cursor: cursorField.optional(),
});
export interface GuidelineQuery extends Infer<typeof guidelineQuerySchema> {}

export const convertRequestSchema = z.strictObject({
  guideline_id: textField(128).min(1, "must not be empty"),
  format: choiceField(conversionFormats),
  preview: z
    .boolean({ error: needed("must be true or false") })
    .optional()
    .meta({ description: "Default true: kit writes nothing." }),
  overwrite: z
    .boolean({ error: needed("must be true or false") })
    .optional()
    .meta({ description: "Default false: an existing file with other content is a conflict." }),
  expected: changeDigestField.optional().meta({
    description:
      "`change.digest` of the preview. If the write would make a different change, kit writes nothing and replies `conflict`; `meta.files` names the file.",
  }),
});
export interface ConvertRequest extends Infer<typeof convertRequestSchema> {}

export const exportRequestSchema = z.strictObject({
  format: choiceField(exportFormats),
});
export interface ExportRequest extends Infer<typeof exportRequestSchema> {}

/** Why a guideline applies to a file, or why it does not. */
export interface AppliedGuideline {
  readonly guideline: Guideline;
  /** 1-based lines of the source file. */
  readonly line: number;
  /** Approximate tokens: a quarter of its characters. */
  readonly tokens: number;
  /** The alias of the file under which the tool finds it; absent if that is its real path. */
  readonly via?: string | undefined;
  readonly reason: "always" | "pattern" | "nested" | "import" | "manual" | "auto";
  /**
   * For a pattern, the glob that matched; for an import, the importing files, outermost first, joined by ` > `; for
   * a guideline that is always included, a note that its globs are ignored.
   */
  readonly detail?: string | undefined;
}

export interface ShadowedGuideline extends AppliedGuideline {
  /** The id or file of the replacement, and the rule for it. */
  readonly shadowed_by: string;
  readonly rule: string;
}

/** The guidelines that apply to one file, in the order in which the tool would read them. */
export interface Explanation {
  readonly file: string;
  readonly tool?: ExplainTool | undefined;
  readonly applied: readonly AppliedGuideline[];
  readonly shadowed: readonly ShadowedGuideline[];
  /** Approximate tokens of the guidelines that apply without a request. */
  readonly tokens: number;
  /** One sentence for each applicable part that the tool does not read; absent if there is none. */
  readonly notes?: readonly string[];
}

/** The query of `GET /api/guidelines/explain`. */
export const explainQuerySchema = z.strictObject({
  file: projectPathField.meta({ description: "A path inside the project; it need not exist." }),
  tools: textField(1_000)
    .transform((tools): unknown[] => tools.split(","))
    .pipe(z.array(choiceField(explainTools)))
    .optional()
    .meta({ description: "Tools, joined by commas; without it, all." }),
});

const appliedReferenceSchema = z.object({
  guideline_id: z.string(),
  title: z.string(),
  source_file: z.string(),
  line: z.int().min(1),
  tokens: z.int().meta({ description: "Approximate: a quarter of its characters." }),
  via: z.string().optional().meta({ description: "The alias of the file under which the tool finds it." }),
  reason: z.enum(["always", "pattern", "nested", "import", "manual", "auto"]),
  detail: z
    .string()
    .optional()
    .meta({ description: "The glob that matched, or the importing files, joined by ` > `." }),
});

const toolExplanationSchema = z.object({
  tool: z.enum(explainTools),
  applied: z
    .array(appliedReferenceSchema)
    .meta({ description: "In the order in which the tool reads them." }),
  shadowed: z.array(
    appliedReferenceSchema.extend({
      shadowed_by: z.string().meta({ description: "The id or file of the replacement." }),
      rule: z.string(),
    }),
  ),
  tokens: z.int().meta({ description: "Approximate, of the guidelines that apply without a request." }),
  notes: z.array(z.string()).meta({ description: "The applicable parts that the tool does not read." }),
});

/** The guidelines that apply to a file, tool by tool, without the texts: `GET /api/guidelines/{id}` has those. */
export const fileExplanationSchema = z
  .object({
    file: z.string(),
    explanations: z
      .array(toolExplanationSchema)
      .meta({ description: "In the order of the requested tools." }),
    indexing: indexingSchema.optional(),
  })
  .meta({ id: "FileExplanation" });
export interface FileExplanation extends Infer<typeof fileExplanationSchema> {}
