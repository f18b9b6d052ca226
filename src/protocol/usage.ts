import * as z from "zod/mini";
import type { Infer } from "./fields.ts";

const dollars = z.nullable(z.number());

/** The cost of a model call, in US dollars; `null` where the price is unknown. */
const costSchema = z
  .object({ input: dollars, output: dollars, cache_read: dollars, cache_write: dollars, total: dollars })
  .check(z.meta({ id: "Cost", description: "US dollars; null where the price is unknown." }));
export interface Cost extends Infer<typeof costSchema> {}

/** Tokens of one or more model calls. */
export const usageSchema = z
  .object({
    /** Includes what was read from and written to a cache. */
    input: z.int(),
    output: z.int(),
    cache_read: z.int(),
    cache_write: z.int(),
    total_tokens: z.int(),
    cost: costSchema,
  })
  .check(z.meta({ id: "Usage", description: "Tokens." }));
export interface Usage extends Infer<typeof usageSchema> {}

/** US dollars per million tokens. */
export interface ModelPrice {
  readonly input: number;
  readonly output: number;
  readonly cache_read?: number | undefined;
  readonly cache_write?: number | undefined;
}
