import { z } from "zod";
import { cursorField, type Infer, limitField } from "./fields.ts";
import { indexingSchema } from "./indexing.ts";

/** The query of `GET /api/specs/stale`. */
export const staleQuerySchema = z.strictObject({
  limit: limitField.optional().meta({ description: "Blocks per page, 1 to 1,000; default 50." }),
  cursor: cursorField.optional(),
});
export interface StaleQuery extends Infer<typeof staleQuerySchema> {}

/** A file that a spec names and that changed after the spec did. */
const staleFileSchema = z.object({
  path: z.string(),
  /** ISO 8601 time of the last commit of the file; absent for a file that was never committed. */
  changed_at: z.string().optional(),
  /** The hash of that commit; absent if the change is not committed yet. */
  commit: z.string().optional(),
  commits: z.int().optional().meta({
    description: "Number of commits of the file since `base`; absent if no change is committed.",
  }),
  lines_added: z.int().optional().meta({
    description: "Since `base`, without lines that differ in spaces alone; absent for a file without lines.",
  }),
  lines_removed: z.int().optional(),
});
export interface StaleFile extends Infer<typeof staleFileSchema> {}

/** A block whose referenced code changed in Git after its last change and last acceptance. */
const staleSpecSchema = z.object({
  id: z.string(),
  title: z.string(),
  path: z.string(),
  line: z.int().min(1),
  base: z.string().meta({ description: "The last commit that changed the lines of the block." }),
  /** ISO 8601 time of that commit. */
  updated_at: z.string(),
  /** ISO 8601 time at which a person last confirmed the block. */
  accepted_at: z.string().optional(),
  files: z.array(staleFileSchema),
});
export interface StaleSpec extends Infer<typeof staleSpecSchema> {}

/** A report with one page of the stale blocks; all other fields describe the whole list. */
export const stalePageSchema = z
  .object({
    /** In path, then line order. */
    stale: z.array(staleSpecSchema),
    total_count: z.int().meta({ description: "Of the whole list, not of the page." }),
    next_cursor: z.string().optional(),
    /** Number of blocks that can become stale: without finished tasks and obsolete blocks. */
    checked: z.int().meta({ description: "Number of checked blocks: those that name code of the project." }),
    /** Sentences about missing data of Git: no repository, no commit yet, a shallow clone. */
    notes: z.array(z.string()),
    indexing: indexingSchema.optional(),
  })
  .meta({ id: "StalePage" });
export interface StalePage extends Infer<typeof stalePageSchema> {}

export type StaleReport = Omit<StalePage, "total_count" | "next_cursor" | "indexing">;

/** The result of `acceptStale`. */
export interface StaleAcceptance {
  /** Ids of the blocks that were stale. */
  readonly accepted: readonly string[];
  /** The file of acceptances, project-relative; commit it. Absent if nothing was written. */
  readonly written_to?: string;
}
