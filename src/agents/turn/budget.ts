import type { LanguageModelV4Usage } from "@ai-sdk/provider";
import { type Clock, isoTime } from "../../base/clock.ts";
import { KitError } from "../../base/kit-error.ts";
import type { Cost, ModelPrice, Usage } from "../../protocol/message.ts";
import { addUsage, noUsage, unknownCost } from "../../protocol/read-records.ts";
import type { SessionEntry } from "../../protocol/session-entry.ts";
import type { Budget } from "../define/profile-settings.ts";
import { spentNote } from "../log/past-operation.ts";

const defaultMaxTurns = 100;

export const noBudget: Budget = {};

/** The usage and budget of an operation. A task's spending also counts for the operation that started it. */
export class Spending {
  budget: Budget = noBudget;
  usage: Usage = noUsage;
  /** Turns of the operation itself. */
  turns = 0;
  // The part of `usage` that no message of the operation carries: that of its tasks and compactions.
  #unlogged: Usage = noUsage;
  readonly #parent: Spending | undefined;

  constructor(parent?: Spending) {
    this.#parent = parent;
  }

  add(usage: Usage): void {
    // The first usage is the sum.
    this.usage = this.usage === noUsage ? usage : addUsage(this.usage, usage);
    this.#parent?.addUnlogged(usage);
  }

  /** Adds usage that no message of the operation carries, so that the log needs a note of it. */
  addUnlogged(usage: Usage): void {
    this.add(usage);
    this.#unlogged = addUsage(this.#unlogged, usage);
  }

  /** Adds the spending from before an interruption. */
  resume(past: { readonly usage: Usage; readonly turns: number }): void {
    this.turns = past.turns;
    this.add(past.usage);
  }

  /** Returns the usage that the log lacks, once; undefined if there is none. */
  takeUnlogged(): Usage | undefined {
    const unlogged = this.#unlogged;
    if (unlogged === noUsage) return undefined;
    this.#unlogged = noUsage;
    return unlogged;
  }

  /** Throws `budget_exceeded` if the operation, or one above it, may not call the model again. */
  check(): void {
    const maxTurns = this.budget.maxTurns ?? defaultMaxTurns;
    if (this.turns >= maxTurns) throw exceeded(`${maxTurns} model calls`, "maxTurns");
    let spender: Spending | undefined = this;
    for (; spender !== undefined; spender = spender.#parent) {
      const { budget, usage } = spender;
      if (budget.maxTokens !== undefined && usage.total_tokens >= budget.maxTokens)
        throw exceeded(`${budget.maxTokens} tokens`, "maxTokens");
      if (budget.maxCost !== undefined) checkCost(budget.maxCost, usage);
    }
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

/** The note with the cost of tasks and compactions since the last note; undefined if there is none. */
export function spentEntry(
  { spending, id }: { readonly spending: Spending; readonly id: string },
  clock: Clock,
): SessionEntry | undefined {
  const value = spending.takeUnlogged();
  if (value === undefined) return undefined;
  const timestamp = isoTime(clock.now());
  return { version: 1, type: "note", name: spentNote, value, timestamp, operation_id: id };
}

/** Converts a provider's usage and prices it. Missing counts are zero. */
export function toUsage(usage: LanguageModelV4Usage | undefined, price: ModelPrice | undefined): Usage {
  const input = usage?.inputTokens.total ?? 0;
  const output = usage?.outputTokens.total ?? 0;
  const cache_read = usage?.inputTokens.cacheRead ?? 0;
  const cache_write = usage?.inputTokens.cacheWrite ?? 0;
  const reasoning = usage?.outputTokens.reasoning;
  const total_tokens = input + output;
  const cost = price === undefined ? unknownCost : toCost({ input, output, cache_read, cache_write }, price);
  // A field that is added later would lie in a second object, which stays in the history with the first.
  return reasoning === undefined
    ? { input, output, cache_read, cache_write, total_tokens, cost }
    : { input, output, cache_read, cache_write, total_tokens, cost, reasoning };
}

function toCost(counts: Omit<Usage, "cost" | "total_tokens">, price: ModelPrice): Cost {
  // `input` includes cached tokens, which have their own prices.
  const fresh = Math.max(0, counts.input - counts.cache_read - counts.cache_write);
  const input = (fresh * price.input) / 1e6;
  const output = (counts.output * price.output) / 1e6;
  const cache_read = (counts.cache_read * (price.cache_read ?? price.input)) / 1e6;
  const cache_write = (counts.cache_write * (price.cache_write ?? price.input)) / 1e6;
  return { input, output, cache_read, cache_write, total: input + output + cache_read + cache_write };
}
