import { count, type FieldChecks, flag, text } from "./check-fields.ts";

/** When and how a session's history is shortened; all counts are tokens. */
export interface CompactionSettings {
  readonly enabled: boolean;
  /** The model's window, where the model does not say it itself; default 128,000. */
  readonly contextWindowTokens: number;
  /** Reserved for the answer; default 16,384. */
  readonly reserveTokens: number;
  /** Tokens of the newest history that are kept verbatim; default 20,000. */
  readonly keepRecentTokens: number;
  /** `provider/model` that writes the summary; default: the agent's own. */
  readonly model?: string;
}

export const compactionFields: { readonly of: string; readonly fields: FieldChecks<CompactionSettings> } = {
  of: "setting of compaction",
  fields: {
    enabled: flag,
    contextWindowTokens: count(1),
    reserveTokens: count(0),
    keepRecentTokens: count(0),
    model: text,
  },
};

export const defaultCompaction: CompactionSettings = {
  enabled: true,
  contextWindowTokens: 128_000,
  reserveTokens: 16_384,
  keepRecentTokens: 20_000,
};

/** Limits of one operation; a missing limit does not apply, except `maxTurns`. */
export interface Budget {
  /** Model calls; default 100. */
  readonly maxTurns?: number;
  /** Tokens of all calls together, those of tasks and compactions included. */
  readonly maxTokens?: number;
  /** US dollars, likewise; a call with an unknown price exceeds it. */
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
