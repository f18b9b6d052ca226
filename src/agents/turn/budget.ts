import { KitError } from "../../base/kit-error.ts";
import { addUsage, noUsage } from "../../protocol/add-usage.ts";
import type { Usage } from "../../protocol/usage.ts";
import { count, type FieldChecks } from "../check-fields.ts";

/** Limits of one operation; what is left out is not limited, except `maxTurns`. */
export interface Budget {
  /** Model calls; default 100. */
  readonly maxTurns?: number;
  /** Tokens of all calls together, those of tasks and compactions included. */
  readonly maxTokens?: number;
  /** US dollars, likewise; a call whose price is unknown counts as over. */
  readonly maxCost?: number;
}

export const budgetFields: { readonly of: string; readonly fields: FieldChecks<Budget> } = {
  of: "limit of a budget",
  fields: {
    maxTurns: count(1),
    maxTokens: count(1),
    maxCost: ["a number from 0 up", (value) => typeof value === "number" && value >= 0],
  },
};

const defaultMaxTurns = 100;

/** What an operation has used and may use. What a task spends, the operation that started it spends too. */
export class Spending {
  budget: Budget = {};
  usage: Usage = noUsage;
  /** Turns of the operation itself. */
  turns = 0;
  // The part of `usage` that stands in no message of the operation: of its tasks and compactions.
  #unlogged: Usage = noUsage;
  readonly #above: Spending | undefined;

  constructor(above?: Spending) {
    this.#above = above;
  }

  add(usage: Usage): void {
    this.usage = addUsage(this.usage, usage);
    this.#above?.addUnlogged(usage);
  }

  /** Counts what the log has to be told: no message of the operation carries it. */
  addUnlogged(usage: Usage): void {
    this.add(usage);
    this.#unlogged = addUsage(this.#unlogged, usage);
  }

  /** What was spent before it was interrupted counts as well. */
  resume(past: { readonly usage: Usage; readonly turns: number }): void {
    this.turns = past.turns;
    this.add(past.usage);
  }

  /** Gives what the log has to be told, once; undefined when that is nothing. */
  takeUnlogged(): Usage | undefined {
    const unlogged = this.#unlogged;
    if (unlogged === noUsage) return undefined;
    this.#unlogged = noUsage;
    return unlogged;
  }

  /** Throws `budget_exceeded` when the operation, or one above it, may not call the model again. */
  check(): void {
    const maxTurns = this.budget.maxTurns ?? defaultMaxTurns;
    if (this.turns >= maxTurns) throw exceeded(`${maxTurns} model calls`, "maxTurns");
    this.#checkUsage();
  }

  #checkUsage(): void {
    const { budget, usage } = this;
    if (budget.maxTokens !== undefined && usage.total_tokens >= budget.maxTokens) {
      throw exceeded(`${budget.maxTokens} tokens`, "maxTokens");
    }
    if (budget.maxCost !== undefined) checkCost(budget.maxCost, usage);
    if (this.#above !== undefined) this.#above.#checkUsage();
  }
}

function checkCost(maxCost: number, usage: Usage): void {
  if (usage.cost.total === null) {
    throw new KitError({
      code: "budget_exceeded",
      message: "The budget has a cost limit, and the price of this model is unknown.",
      hint: "Set its price in `providers.<name>.prices`, or limit `maxTokens` instead.",
    });
  }
  if (usage.cost.total >= maxCost) throw exceeded(`${maxCost} US dollars`, "maxCost");
}

function exceeded(limit: string, field: string): KitError {
  return new KitError({
    code: "budget_exceeded",
    message: `The operation has used up its budget of ${limit}.`,
    hint: `Raise \`budget.${field}\`, or send another prompt to go on: the history is kept.`,
  });
}
