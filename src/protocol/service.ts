import { z } from "zod";
import type { Infer } from "./fields.ts";
import { indexingSchema } from "./indexing.ts";

/** The reply of `GET /health`. */
export const healthSchema = z
  .object({ ok: z.literal(true), name: z.literal("kit"), version: z.string() })
  .meta({ id: "Health" });
export interface Health extends Infer<typeof healthSchema> {}

/** The reply of `GET /` to a client that asks for JSON: what is here, and where to go on. */
export const overviewSchema = z
  .object({
    name: z.literal("kit"),
    version: z.string(),
    project: z.string(),
    specs: z.int(),
    specs_by_framework: z.record(z.string(), z.int()),
    guidelines: z.int(),
    guidelines_by_source: z.record(z.string(), z.int()),
    indexing: indexingSchema.optional(),
    /** Absent where nothing can be prompted. */
    agents: z.array(z.string()).optional().meta({ description: "Names of those that can be reached." }),
    workflows: z.array(z.string()).optional(),
    links: z.record(z.string(), z.string()),
  })
  .meta({ id: "Overview" });
export interface Overview extends Infer<typeof overviewSchema> {}
