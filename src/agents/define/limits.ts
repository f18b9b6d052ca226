import { defined } from "../../base/defined.ts";
import { type Fields, flag, integer, live, object, string } from "../../base/settings.ts";

export const compactionSettings = object(
  {
    enabled: flag,
    /** The model's window, where the model does not say it itself; default 128,000. */
    contextWindowTokens: integer(1),
    /** Reserved for the answer; default 16,384. */
    reserveTokens: integer(0),
    /** Tokens of the newest history that are kept verbatim; default 20,000. */
    keepRecentTokens: integer(0),
    /** `provider/model` that writes the summary; default: the agent's own. */
    model: string,
  },
  { of: "setting of compaction" },
);

type Settings = Fields<typeof compactionSettings>;
type Complete<Given> = { readonly [Name in keyof Given]-?: Exclude<Given[Name], undefined> };

/** When and how a session's history is shortened; all counts are tokens. */
export interface CompactionSettings extends Complete<Omit<Settings, "model">>, Pick<Settings, "model"> {}

const defaultCompaction: CompactionSettings = {
  enabled: true,
  contextWindowTokens: 128_000,
  reserveTokens: 16_384,
  keepRecentTokens: 20_000,
};

/** The settings of a profile over the defaults. */
export function compactionOf({
  compaction = {},
}: {
  readonly compaction?: Settings | undefined;
}): CompactionSettings {
  return { ...defaultCompaction, ...defined(compaction) };
}

/** Limits of one operation; a missing limit does not apply, except `maxTurns`. */
export const budget = object(
  {
    /** Model calls; default 100. */
    maxTurns: integer(1),
    /** Tokens of all calls together, those of tasks and compactions included. */
    maxTokens: integer(1),
    /** US dollars, likewise; a call with an unknown price exceeds it. */
    maxCost: live<number>("a number from 0 up", (value) => typeof value === "number" && value >= 0),
  },
  { of: "limit of a budget" },
);
export interface Budget extends Fields<typeof budget> {}
