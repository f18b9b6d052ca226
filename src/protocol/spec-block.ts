import { z } from "zod";
import { earsPatterns, frameworks, lifecycles, maxSummaryLength, priorities, specTypes } from "./enums.ts";
import { atMost, type Infer } from "./fields.ts";

export type { EarsPattern, Framework, Lifecycle, Priority, SpecType } from "./enums.ts";

const line = z.int().min(1);

/** Lines of the file on disk: 1-based, inclusive. */
const sourceSpanSchema = z.object({ start_line: line, end_line: line });
export interface SourceSpan extends Infer<typeof sourceSpanSchema> {}

/** One acceptance criterion, split at its keywords. */
const acceptanceCriterionSchema = z.object({
  pattern: z.string(),
  /** Empty if there is none. */
  trigger: z.string(),
  response: z.string(),
});
export interface AcceptanceCriterion extends Infer<typeof acceptanceCriterionSchema> {}

/** A criterion as written: its number ("1.2"), text, form and line in the source file. */
const earsEntrySchema = z.object({
  pattern: z.enum([...earsPatterns, "unclassified"]),
  text: z.string(),
  line,
  number: z.string().optional(),
});
export interface EarsEntry extends Infer<typeof earsEntrySchema> {}

/** `metadata.status` of a task. */
export type TaskStatus = "open" | "done" | "in_progress";

const specMetadataSchema = z
  .looseObject({
    source: sourceSpanSchema
      .optional()
      .meta({ description: "Lines of the file on disk: 1-based, inclusive." }),
    aliases: z
      .array(z.string())
      .optional()
      .meta({ description: "Other paths of the file: links inside the project that lead to it." }),
    /** The author that the source names, else the author of the file's first commit. */
    author: z.string().optional(),
    version: z.string().optional(),
    related_specs: z.array(z.string()).optional(),
    code_refs: z.array(z.string()).optional(),
    test_refs: z.array(z.string()).optional(),
    acceptance_criteria: z.array(acceptanceCriterionSchema).optional(),
    ears_patterns: z.array(earsEntrySchema).optional(),
    user_story: z.string().optional(),
    status: z.string().optional(),
    criteria: z.array(z.string()).optional().meta({
      description:
        "On a task of Kiro or Spec Kit: the keys of the criteria and requirements that it names (`checkout#1.4`), with the name of its feature's folder.",
    }),
  })
  .meta({ id: "SpecMetadata", description: "Free-form, with some keys that all adapters share." });
export interface SpecMetadata extends Infer<typeof specMetadataSchema> {}

/** The record for specifications of every framework. */
export const specBlockSchema = z
  .object({
    /** Stable as long as the file does not change. */
    id: z.string().meta({ description: "Unique within a project." }),
    path: z.string().meta({ description: "POSIX, relative to the project root." }),
    framework: z.enum(frameworks),
    spec_type: z.enum(specTypes),
    title: z.string(),
    content: z.string(),
    summary: atMost(maxSummaryLength).optional(),
    tags: z.array(z.string()),
    lifecycle: z.enum(lifecycles),
    priority: z.enum(priorities),
    created_at: z.string().optional().meta({ description: "ISO 8601." }),
    updated_at: z.string().optional().meta({ description: "ISO 8601." }),
    metadata: specMetadataSchema,
  })
  .meta({ id: "SpecBlock" });
export interface SpecBlock extends Infer<typeof specBlockSchema> {}
