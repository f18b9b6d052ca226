import { z } from "zod";
import type { Infer } from "./fields.ts";

/**
 * The progress of indexing a project. An answer that carries it can lack files that are not indexed yet.
 */
export const indexingSchema = z
  .object({
    /** Number of indexed files. */
    done: z.int(),
    /** 0 until the files are counted. */
    total: z.int(),
  })
  .meta({ id: "Indexing", description: "The project is still being indexed: the answer can lack files." });
export interface IndexingProgress extends Infer<typeof indexingSchema> {}
