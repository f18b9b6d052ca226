import { z } from "zod";
import { type CoveragePage, type CoverageQuery, coverageEvidence } from "../coverage.ts";
import { type Diagnostic, diagnosticRules } from "../diagnostic.ts";
import type { IndexingProgress } from "../indexing.ts";
import {
  earsPatterns,
  frameworks,
  lifecycles,
  maxSummaryLength,
  priorities,
  type SpecBlock,
  type SpecMetadata,
  specTypes,
} from "../spec-block.ts";
import type { Impact, ImpactEdge, ImpactRequest, SpecGraph, SpecPage, SpecQuery } from "../spec-query.ts";
import { specEdgeKinds } from "../spec-query.ts";
import type { StalePage, StaleQuery } from "../stale.ts";
import {
  atMost,
  choiceField,
  countField,
  cursorField,
  indexingSchema,
  limitField,
  maxRequestItems,
  needed,
  projectPathField,
  textField,
} from "./fields.ts";

/** The query of `GET /api/specs`, and the input of the MCP tool `spec_search`. */
export const specQuerySchema: z.ZodType<SpecQuery> = z.strictObject({
  q: textField(1_000)
    .exactOptional()
    .meta({ description: "Words to look for in title, summary, content and tags; best match first." }),
  framework: choiceField(frameworks).exactOptional(),
  spec_type: choiceField(specTypes).exactOptional(),
  lifecycle: choiceField(lifecycles)
    .exactOptional()
    .meta({ description: "Without it, obsolete blocks are left out." }),
  priority: choiceField(priorities).exactOptional(),
  tag: textField(200).exactOptional(),
  path: textField(4_096)
    .exactOptional()
    .meta({ description: "A file, a folder (its subtree) or a glob, relative to the project root." }),
  rules: z
    .boolean({ error: needed("must be true or false") })
    .exactOptional()
    .meta({
      description:
        "The rules of instruction files (CLAUDE.md, Cursor's rules). Without it, and without a search or a filter for them, they are left out where there are other specs.",
    }),
  limit: limitField.exactOptional().meta({ description: "Blocks per page, 1 to 1,000; default 50." }),
  cursor: cursorField.exactOptional(),
});

export const impactRequestSchema: z.ZodType<ImpactRequest> = z.strictObject({
  files: z
    .array(projectPathField, { error: needed("must be a list of paths") })
    .max(maxRequestItems)
    .exactOptional()
    .meta({ description: "Changed files, relative to the project root." }),
  ids: z
    .array(textField(1_000), { error: needed("must be a list of ids") })
    .max(maxRequestItems)
    .exactOptional()
    .meta({ description: "Changed spec blocks." }),
  depth: countField(5).exactOptional().meta({ description: "How many edges to follow, 1 to 5; default 2." }),
  include_obsolete: z.boolean().exactOptional().meta({ description: "Also obsolete blocks." }),
  expand_features: z
    .boolean()
    .exactOptional()
    .meta({ description: "Also, one by one, the blocks that merely lie in the feature of an affected one." }),
  limit: countField(1_000)
    .exactOptional()
    .meta({ description: "Affected blocks per page, 1 to 1,000; default 50." }),
  cursor: cursorField.exactOptional(),
});

/** `POST /api/specs/validate`: the blocks are judged by the validation rules, not by this schema. */
export const validateRequestSchema: z.ZodType<{ readonly blocks: readonly unknown[] }> = z.strictObject({
  blocks: z
    .array(z.unknown(), {
      error: needed("must be a list of spec blocks"),
    })
    .max(maxRequestItems)
    .meta({ description: "Spec blocks, as complete or broken as they are." }),
});

const line = z.int().min(1);

const specMetadataSchema: z.ZodType<SpecMetadata> = z
  .looseObject({
    source: z
      .object({ start_line: line, end_line: line })
      .exactOptional()
      .meta({ description: "Lines of the file as it lies on disk: 1-based, inclusive." }),
    aliases: z
      .array(z.string())
      .exactOptional()
      .meta({ description: "Other names of the file: links inside the project that lead to it." }),
    author: z.string().exactOptional(),
    version: z.string().exactOptional(),
    related_specs: z.array(z.string()).exactOptional(),
    code_refs: z.array(z.string()).exactOptional(),
    test_refs: z.array(z.string()).exactOptional(),
    acceptance_criteria: z
      .array(z.object({ pattern: z.string(), trigger: z.string(), response: z.string() }))
      .exactOptional(),
    ears_patterns: z
      .array(
        z.object({
          pattern: z.enum([...earsPatterns, "unclassified"]),
          text: z.string(),
          line,
          number: z.string().exactOptional(),
        }),
      )
      .exactOptional(),
    user_story: z.string().exactOptional(),
    status: z.string().exactOptional(),
  })
  .meta({ id: "SpecMetadata", description: "Free-form, with the keys that adapters agree on." });

/** The one record that specifications of every framework become. */
export const specBlockSchema: z.ZodType<SpecBlock> = z
  .object({
    id: z.string().meta({ description: "Unique within a project." }),
    path: z.string().meta({ description: "POSIX, relative to the project root." }),
    framework: z.enum(frameworks),
    spec_type: z.enum(specTypes),
    title: z.string(),
    content: z.string(),
    summary: atMost(maxSummaryLength).exactOptional(),
    tags: z.array(z.string()),
    lifecycle: z.enum(lifecycles),
    priority: z.enum(priorities),
    created_at: z.string().exactOptional().meta({ description: "ISO 8601." }),
    updated_at: z.string().exactOptional().meta({ description: "ISO 8601." }),
    metadata: specMetadataSchema,
  })
  .meta({ id: "SpecBlock" });

export const specPageSchema: z.ZodType<SpecPage> = z
  .object({
    specs: z.array(specBlockSchema),
    total_count: z.int().meta({ description: "Of the whole match, not of the page." }),
    counts_by_framework: z.record(z.string(), z.int()),
    rules_left_out: z
      .int()
      .exactOptional()
      .meta({ description: "Rules of instruction files that are left out; `rules=true` has them." }),
    indexing: indexingSchema,
    next_cursor: z.string().exactOptional(),
  })
  .meta({ id: "SpecPage" });

const impactEdgeSchema: z.ZodType<ImpactEdge> = z
  .object({ from: z.string(), to: z.string(), kind: z.enum(specEdgeKinds) })
  .meta({ id: "ImpactEdge" });

export const impactSchema: z.ZodType<Impact> = z
  .object({
    affected: z.array(
      z.object({
        id: z.string(),
        score: z.number().meta({ description: "0 to 1." }),
        path: z.array(impactEdgeSchema).meta({ description: "The edges that led here." }),
      }),
    ),
    total_count: z.int().meta({ description: "Of the whole answer, not of the page; so is what follows." }),
    same_feature: z
      .array(z.object({ feature: z.string(), specs: z.int() }))
      .meta({ description: "How many blocks merely lie in the feature of an affected one." }),
    obsolete_count: z.int().meta({ description: "Obsolete blocks that are left out." }),
    next_cursor: z.string().exactOptional(),
    tests: z.array(z.string()).meta({ description: "Test files to run." }),
    files: z.array(z.string()),
    indexing: indexingSchema,
  })
  .meta({ id: "Impact" });

export const specGraphSchema: z.ZodType<SpecGraph> = z
  .object({
    nodes: z.array(z.object({ id: z.string(), kind: z.enum(["spec", "file", "test"]), title: z.string() })),
    edges: z.array(impactEdgeSchema),
    indexing: indexingSchema,
  })
  .meta({ id: "SpecGraph" });

/** Query of `GET /api/specs/coverage`. */
export const coverageQuerySchema: z.ZodType<CoverageQuery> = z.strictObject({
  feature: textField(200).exactOptional().meta({ description: "Only this feature, such as checkout." }),
  show: z
    .enum(["all", "uncovered"])
    .exactOptional()
    .meta({ description: "`uncovered`: only criteria that no test names. Default: `all`." }),
  limit: limitField.exactOptional().meta({ description: "Criteria per page, 1 to 1,000; default 50." }),
  cursor: cursorField.exactOptional(),
});

/** Query of `GET /api/specs/stale`. */
export const staleQuerySchema: z.ZodType<StaleQuery> = z.strictObject({
  limit: limitField.exactOptional().meta({ description: "Blocks per page, 1 to 1,000; default 50." }),
  cursor: cursorField.exactOptional(),
});

const diagnosticSchema: z.ZodType<Diagnostic> = z
  .object({
    severity: z.enum(["error", "warning"]),
    rule: z.enum(diagnosticRules),
    code: z.string().exactOptional(),
    message: z.string(),
    path: z.string(),
    line: line.exactOptional(),
    id: z.string().exactOptional(),
    field: z.string().exactOptional(),
  })
  .meta({ id: "Diagnostic" });

export const diagnosticsSchema: z.ZodType<{
  readonly diagnostics: readonly Diagnostic[];
  readonly indexing?: IndexingProgress;
}> = z.object({
  diagnostics: z.array(diagnosticSchema),
  indexing: indexingSchema,
});

export const validationResultSchema: z.ZodType<{
  readonly valid: boolean;
  readonly diagnostics: readonly Diagnostic[];
}> = z
  .object({
    valid: z.boolean().meta({ description: "True when no diagnostic is an error." }),
    diagnostics: z.array(diagnosticSchema),
  })
  .meta({ id: "ValidationResult" });

const coverageCountFields = {
  criteria: z.int(),
  covered: z.int(),
  covered_by_requirement: z.int().meta({ description: "Of these, named only through their requirement." }),
  uncovered: z.int(),
  suggested: z.int().meta({ description: "Of the uncovered ones, those with a test of similar words." }),
};

export const coveragePageSchema: z.ZodType<CoveragePage> = z
  .object({
    criteria: z.array(
      z.object({
        id: z.string().meta({ description: "`<feature>#<number>`: the key to put into a test." }),
        feature: z.string(),
        number: z.string(),
        spec_id: z.string(),
        path: z.string(),
        line,
        text: z.string(),
        tests: z.array(
          z.object({
            path: z.string(),
            line,
            evidence: z.enum(coverageEvidence),
            quote: z.string(),
            whole_requirement: z.literal(true).exactOptional(),
          }),
        ),
        suggestions: z.array(z.object({ path: z.string(), line, score: z.number(), quote: z.string() })),
      }),
    ),
    total_count: z.int().meta({ description: "Of the whole list, not of the page." }),
    next_cursor: z.string().exactOptional(),
    totals: z.object(coverageCountFields),
    by_feature: z.array(z.object({ feature: z.string(), path: z.string(), ...coverageCountFields })),
    test_files: z.int(),
    diagnostics: z.array(diagnosticSchema),
    indexing: indexingSchema,
  })
  .meta({ id: "CoveragePage" });

export const stalePageSchema: z.ZodType<StalePage> = z
  .object({
    stale: z.array(
      z.object({
        id: z.string(),
        title: z.string(),
        path: z.string(),
        line,
        updated_at: z.string(),
        accepted_at: z.string().exactOptional(),
        files: z.array(
          z.object({
            path: z.string(),
            changed_at: z.string().exactOptional(),
            commit: z.string().exactOptional(),
          }),
        ),
      }),
    ),
    total_count: z.int().meta({ description: "Of the whole list, not of the page." }),
    next_cursor: z.string().exactOptional(),
    checked: z.int().meta({ description: "Blocks that name code of the project." }),
    notes: z.array(z.string()),
    indexing: indexingSchema,
  })
  .meta({ id: "StalePage" });
