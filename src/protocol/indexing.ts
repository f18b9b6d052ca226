import { z } from "zod";
import type { Infer } from "./fields.ts";

/**
 * How much of a project is indexed while that takes a while. An answer that carries it may lack what is not
 * indexed yet.
 */
export const indexingSchema = z
  .object({
    /** Files that are indexed. */
    done: z.int(),
    /** 0 until the files are counted. */
    total: z.int(),
  })
  .meta({ id: "Indexing", description: "The project is still being indexed: the answer may lack files." });
export interface IndexingProgress extends Infer<typeof indexingSchema> {}
