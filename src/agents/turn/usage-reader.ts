import type { LanguageModelV4Usage } from "@ai-sdk/provider";
import { unknownCost } from "../../protocol/add-usage.ts";
import type { Cost, ModelPrice, Usage } from "../../protocol/usage.ts";

export type UsageReader = (usage: LanguageModelV4Usage | undefined) => Usage;

/** Reads a provider's usage and prices it. What a provider does not say counts as zero. */
export function createUsageReader(price: ModelPrice | undefined): UsageReader {
  return (usage) => {
    const cacheRead = usage?.inputTokens.cacheRead ?? 0;
    const cacheWrite = usage?.inputTokens.cacheWrite ?? 0;
    const input = usage?.inputTokens.total ?? 0;
    const output = usage?.outputTokens.total ?? 0;
    const counts: Usage = {
      input,
      output,
      cache_read: cacheRead,
      cache_write: cacheWrite,
      total_tokens: input + output,
      cost: unknownCost,
    };
    return price === undefined ? counts : { ...counts, cost: toCost(counts, price) };
  };
}

function toCost(counts: Usage, price: ModelPrice): Cost {
  // `input` counts cached tokens too, and these have prices of their own.
  const fresh = Math.max(0, counts.input - counts.cache_read - counts.cache_write);
  const input = (fresh * price.input) / 1e6;
  const output = (counts.output * price.output) / 1e6;
  const cache_read = (counts.cache_read * (price.cache_read ?? price.input)) / 1e6;
  const cache_write = (counts.cache_write * (price.cache_write ?? price.input)) / 1e6;
  return { input, output, cache_read, cache_write, total: input + output + cache_read + cache_write };
}
