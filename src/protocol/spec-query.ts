import { z } from "zod";
import { frameworks, lifecycles, priorities, specEdgeKinds, specTypes } from "./enums.ts";
import {
  choiceField,
  countField,
  cursorField,
  type Infer,
  limitField,
  maxRequestItems,
  needed,
  projectPathField,
  textField,
} from "./fields.ts";
import { indexingSchema } from "./indexing.ts";
import { specBlockSchema } from "./spec-block.ts";

export type { SpecEdgeKind } from "./enums.ts";

/** The query of `GET /api/specs`, and the input of the MCP tool `spec_search`. Filters combine with AND. */
export const specQuerySchema = z.strictObject({
  q: textField(1_000)
    .optional()
    .meta({ description: "Words to look for in title, summary, content and tags; best match first." }),
  framework: choiceField(frameworks).optional(),
  spec_type: choiceField(specTypes).optional(),
  lifecycle: choiceField(lifecycles)
    .optional()
    .meta({ description: "Without it, obsolete blocks are left out." }),
  priority: choiceField(priorities).optional(),
  tag: textField(200).optional(),
  path: textField(4_096)
    .optional()
    .meta({ description: "A file, a folder (its subtree) or a glob, relative to the project root." }),
  rules: z
    .boolean({ error: needed("must be true or false") })
    .optional()
    .meta({
      description:
        "The rules of instruction files (CLAUDE.md, Cursor's rules). Without it, and without a search or a filter for them, they are left out where there are other specs.",
    }),
  limit: limitField.optional().meta({ description: "Blocks per page, 1 to 1,000; default 50." }),
  cursor: cursorField.optional(),
});
export interface SpecQuery extends Infer<typeof specQuerySchema> {}

export const specPageSchema = z
  .object({
    specs: z.array(specBlockSchema),
    total_count: z.int().meta({ description: "Of the whole match, not of the page." }),
    counts_by_framework: z.record(z.string(), z.int()),
    rules_left_out: z
      .int()
      .optional()
      .meta({ description: "Rules of instruction files that are left out; `rules=true` has them." }),
    indexing: indexingSchema.optional(),
    next_cursor: z.string().optional(),
  })
  .meta({ id: "SpecPage" });
export interface SpecPage extends Infer<typeof specPageSchema> {}

const impactRequestSchema = z.strictObject({
  files: z
    .array(projectPathField, { error: needed("must be a list of paths") })
    .max(maxRequestItems)
    .optional()
    .meta({ description: "Changed files, relative to the project root." }),
  ids: z
    .array(textField(1_000), { error: needed("must be a list of ids") })
    .max(maxRequestItems)
    .optional()
    .meta({ description: "Changed spec blocks." }),
  depth: countField(5).optional().meta({ description: "How many edges to follow, 1 to 5; default 2." }),
  include_obsolete: z.boolean().optional().meta({ description: "Also obsolete blocks." }),
  expand_features: z
    .boolean()
    .optional()
    .meta({ description: "Also, one by one, the blocks that merely lie in the feature of an affected one." }),
  graph: z.boolean().optional().meta({
    description: "Also `graph`: what to draw of this page; over HTTP with the tests that name criteria.",
  }),
  limit: countField(1_000)
    .optional()
    .meta({ description: "Affected blocks per page, 1 to 1,000; default 50." }),
  cursor: cursorField.optional(),
});
export interface ImpactRequest extends Infer<typeof impactRequestSchema> {}

/** The body of `POST /api/specs/impact`. */
export const impactBodySchema = impactRequestSchema.extend({
  since: textField(256).optional().meta({
    description:
      "Also the files that differ from where the present work left this branch, tag or commit, untracked ones included.",
  }),
});
export interface ImpactBody extends Infer<typeof impactBodySchema> {}

/** One step from a changed thing to an affected one. */
const impactEdgeSchema = z
  .object({ from: z.string(), to: z.string(), kind: z.enum(specEdgeKinds) })
  .meta({ id: "ImpactEdge" });
export interface ImpactEdge extends Infer<typeof impactEdgeSchema> {}

const affectedSpecSchema = z.object({
  id: z.string(),
  /** The product of the weights of the edges that led here. */
  score: z.number().meta({ description: "0 to 1." }),
  path: z.array(impactEdgeSchema).meta({ description: "The edges that led here." }),
});
export interface AffectedSpec extends Infer<typeof affectedSpecSchema> {}

/** Blocks that lie in the same feature as an affected one, and have no other link to the change. */
const sameFeatureSchema = z.object({
  /** The folder or file that the feature is specified in. */
  feature: z.string(),
  specs: z.int(),
});
export interface SameFeature extends Infer<typeof sameFeatureSchema> {}

/** Blocks, tests and files of one page of an impact, and how they hang together. */
const impactGraphSchema = z
  .object({
    nodes: z.array(
      z.object({
        id: z.string().meta({ description: "A block's id, or a path." }),
        kind: z.enum([...specTypes, "test", "file"]),
        title: z.string(),
        changed: z.literal(true).optional().meta({ description: "Set for what the request names." }),
      }),
    ),
    edges: z
      .array(z.object({ from: z.string(), to: z.string(), kind: z.enum([...specEdgeKinds, "covered_by"]) }))
      .meta({
        description:
          "`from` is what names the other; with `defines`, the file that holds the block; with `covered_by`, the block whose criterion the test names.",
      }),
    omitted: z.int().meta({ description: "Edges beyond 2,000, which are left out." }),
  })
  .meta({ id: "ImpactGraph" });
export interface ImpactGraph extends Infer<typeof impactGraphSchema> {}

export const impactSchema = z
  .object({
    /** One page, highest score first. */
    affected: z.array(affectedSpecSchema),
    total_count: z.int().meta({ description: "Of the whole answer, not of the page; so is what follows." }),
    /** Empty with `expand_features`. Most first. */
    same_feature: z
      .array(sameFeatureSchema)
      .meta({ description: "How many blocks merely lie in the feature of an affected one." }),
    obsolete_count: z.int().meta({ description: "Obsolete blocks that are left out." }),
    next_cursor: z.string().optional(),
    tests: z.array(z.string()).meta({ description: "Test files to run." }),
    /** Project-relative files that the affected blocks lie in or name. */
    files: z.array(z.string()),
    /** With `since`: the files that it stands for. */
    changed_files: z.array(z.string()).optional().meta({ description: "With `since`: what has changed." }),
    graph: impactGraphSchema.optional().meta({ description: "With `graph`." }),
    indexing: indexingSchema.optional(),
  })
  .meta({ id: "Impact" });
export interface Impact extends Infer<typeof impactSchema> {}

export const specGraphSchema = z
  .object({
    nodes: z.array(z.object({ id: z.string(), kind: z.enum(["spec", "file", "test"]), title: z.string() })),
    edges: z.array(impactEdgeSchema),
    indexing: indexingSchema.optional(),
  })
  .meta({ id: "SpecGraph" });
export interface SpecGraph extends Infer<typeof specGraphSchema> {}

/** `POST /api/specs/validate`: the blocks are judged by the validation rules, not by this schema. */
export const validateRequestSchema = z.strictObject({
  blocks: z
    .array(z.unknown(), {
      error: needed("must be a list of spec blocks"),
    })
    .max(maxRequestItems)
    .meta({ description: "Spec blocks, as complete or broken as they are." }),
});
