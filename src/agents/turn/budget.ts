import { KitError } from "../../base/kit-error.ts";
import type { Usage } from "../../protocol/usage.ts";

/** Limits of one operation; what is left out is not limited, except `maxTurns`. */
export interface Budget {
  /** Model calls; default 100. */
  readonly maxTurns?: number;
  /** Tokens of all calls together. */
  readonly maxTokens?: number;
  /** US dollars; a call whose price is unknown counts as over. */
  readonly maxCost?: number;
}

export const defaultMaxTurns = 100;

/** Throws `budget_exceeded` when the operation may not call the model again. */
export function checkBudget(budget: Budget, turns: number, usage: Usage): void {
  const maxTurns = budget.maxTurns ?? defaultMaxTurns;
  if (turns >= maxTurns) throw exceeded(`${maxTurns} model calls`, "maxTurns");
  if (budget.maxTokens !== undefined && usage.total_tokens >= budget.maxTokens) {
    throw exceeded(`${budget.maxTokens} tokens`, "maxTokens");
  }
  if (budget.maxCost === undefined || turns === 0) return;
  if (usage.cost.total === null) {
    throw new KitError({
      code: "budget_exceeded",
      message: "The budget has a cost limit, and the price of this model is unknown.",
      hint: "Set its price in `providers.<name>.prices`, or limit `maxTokens` instead.",
    });
  }
  if (usage.cost.total >= budget.maxCost) throw exceeded(`${budget.maxCost} US dollars`, "maxCost");
}

function exceeded(limit: string, field: string): KitError {
  return new KitError({
    code: "budget_exceeded",
    message: `The operation has used up its budget of ${limit}.`,
    hint: `Raise \`budget.${field}\`, or send another prompt to go on: the history is kept.`,
  });
}
