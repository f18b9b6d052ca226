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
        "False leaves out the rules of instruction files (CLAUDE.md, Cursor's rules). By default every framework's blocks are listed.",
    }),
  limit: limitField.optional().meta({ description: "Blocks per page, 1 to 1,000; default 50." }),
  cursor: cursorField.optional(),
});
export interface SpecQuery extends Infer<typeof specQuerySchema> {}

export const specPageSchema = z
  .object({
    specs: z.array(specBlockSchema),
    total_count: z.int().meta({ description: "Of all matches, not of the page." }),
    counts_by_framework: z.record(z.string(), z.int()),
    rules_left_out: z.int().optional().meta({
      description: "Number of rules of instruction files that a list for people leaves out.",
    }),
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
  depth: countField(5).optional().meta({ description: "Number of edges to follow, 1 to 5; default 2." }),
  include_obsolete: z.boolean().optional().meta({ description: "Include obsolete blocks." }),
  expand_features: z.boolean().optional().meta({
    description: "Lists each block whose only link to the change is the feature of an affected block.",
  }),
  graph: z.boolean().optional().meta({
    description:
      "Adds `graph`: the nodes and edges of this page; over HTTP with the tests that name criteria.",
  }),
  limit: countField(1_000)
    .optional()
    .meta({ description: "Affected blocks per page, 1 to 1,000; default 50." }),
  cursor: cursorField.optional(),
});
export interface ImpactRequest extends Infer<typeof impactRequestSchema> {}

const changedSpecSchema = z
  .object({
    id: z.string().meta({ description: "Of a removed block: the id that it had." }),
    path: z.string(),
    change: z.enum(["added", "modified", "removed"]),
    what: z.array(z.string()).meta({
      description: "What differs: `text`, `criteria`, `tags`, or old and new value: `status open → done`.",
    }),
  })
  .meta({ id: "ChangedSpec" });
export interface ChangedSpec extends Infer<typeof changedSpecSchema> {}

/** Files of which only the changed blocks count as changed. */
export interface ComparedSpecs {
  readonly files: readonly string[];
  readonly specs: readonly ChangedSpec[];
}

/** The body of `POST /api/specs/impact`. */
export const impactBodySchema = impactRequestSchema.extend({
  since: textField(256).optional().meta({
    description:
      "Adds the files that differ from the merge base with this branch, tag or commit, including untracked files.",
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
  /** The product of the weights of the edges in `path`. */
  score: z.number().meta({ description: "0 to 1." }),
  path: z.array(impactEdgeSchema).meta({ description: "The edges from the change to this block." }),
});
export interface AffectedSpec extends Infer<typeof affectedSpecSchema> {}

/** Blocks whose only link to the change is the feature of an affected block. */
const sameFeatureSchema = z.object({
  /** The folder or file that specifies the feature. */
  feature: z.string(),
  specs: z.int(),
});
export interface SameFeature extends Infer<typeof sameFeatureSchema> {}

/** The blocks, tests and files of one page of an impact, and the edges between them. */
const impactGraphSchema = z
  .object({
    nodes: z.array(
      z.object({
        id: z.string().meta({ description: "A block's id, or a path." }),
        kind: z.enum([...specTypes, "test", "file"]),
        title: z.string(),
        changed: z
          .literal(true)
          .optional()
          .meta({ description: "Set for the blocks and files in the request." }),
      }),
    ),
    edges: z.array(z.object({ from: z.string(), to: z.string(), kind: z.enum(specEdgeKinds) })).meta({
      description:
        "`from` names `to`; with `defines`, `from` is the file that holds the block; with `covered_by`, the block whose criterion the test names.",
    }),
    omitted: z.int().meta({ description: "Number of edges left out beyond 2,000." }),
  })
  .meta({ id: "ImpactGraph" });
export interface ImpactGraph extends Infer<typeof impactGraphSchema> {}

export const impactSchema = z
  .object({
    /** One page, highest score first. */
    affected: z.array(affectedSpecSchema),
    total_count: z.int().meta({
      description: "Of the whole answer, not of the page; the same holds for the following fields.",
    }),
    /** Empty with `expand_features`. Features with the most blocks first. */
    same_feature: z.array(sameFeatureSchema).meta({
      description: "Number of blocks whose only link to the change is the feature of an affected block.",
    }),
    obsolete_count: z.int().meta({ description: "Number of obsolete blocks that are left out." }),
    next_cursor: z.string().optional(),
    tests: z.array(z.string()).meta({ description: "Test files to run." }),
    /** Project-relative files that hold the affected blocks or that these name. */
    files: z.array(z.string()),
    changed_files: z.array(z.string()).optional().meta({ description: "With `since`: the changed files." }),
    changed_specs: z.array(changedSpecSchema).optional().meta({
      description:
        "With `since`: the blocks that differ from that revision, which come first among the affected.",
    }),
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

/** The body of `POST /api/specs/validate`. The validation rules check the blocks, not this schema. */
export const validateRequestSchema = z.strictObject({
  blocks: z
    .array(z.unknown(), {
      error: needed("must be a list of spec blocks"),
    })
    .max(maxRequestItems)
    .meta({ description: "Spec blocks; they can be incomplete or invalid." }),
});
