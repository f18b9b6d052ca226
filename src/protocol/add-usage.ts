import type { Cost, Usage } from "./usage.ts";

export const unknownCost: Cost = {
  input: null,
  output: null,
  cache_read: null,
  cache_write: null,
  total: null,
};

export const noUsage: Usage = {
  input: 0,
  output: 0,
  cache_read: 0,
  cache_write: 0,
  total_tokens: 0,
  cost: { input: 0, output: 0, cache_read: 0, cache_write: 0, total: 0 },
};

/** The sum of two usages. A cost that is unknown on either side is unknown in the sum. */
export function addUsage(left: Usage, right: Usage): Usage {
  return {
    input: left.input + right.input,
    output: left.output + right.output,
    cache_read: left.cache_read + right.cache_read,
    cache_write: left.cache_write + right.cache_write,
    total_tokens: left.total_tokens + right.total_tokens,
    cost: {
      input: addCost(left.cost.input, right.cost.input),
      output: addCost(left.cost.output, right.cost.output),
      cache_read: addCost(left.cost.cache_read, right.cost.cache_read),
      cache_write: addCost(left.cost.cache_write, right.cost.cache_write),
      total: addCost(left.cost.total, right.cost.total),
    },
  };
}

function addCost(left: number | null, right: number | null): number | null {
  return left === null || right === null ? null : left + right;
}
