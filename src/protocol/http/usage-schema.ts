import { z } from "zod";
import type { Cost, Usage } from "../usage.ts";

const dollars = z.number().nullable();

const costSchema: z.ZodType<Cost> = z
  .object({ input: dollars, output: dollars, cache_read: dollars, cache_write: dollars, total: dollars })
  .meta({ id: "Cost", description: "US dollars; null where the price is unknown." });

export const usageSchema: z.ZodType<Usage> = z
  .object({
    input: z.int(),
    output: z.int(),
    cache_read: z.int(),
    cache_write: z.int(),
    total_tokens: z.int(),
    cost: costSchema,
  })
  .meta({ id: "Usage", description: "Tokens." });
