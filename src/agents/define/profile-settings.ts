import type { LanguageModelV4, SharedV4ProviderOptions } from "@ai-sdk/provider";
import * as z from "zod/mini";
import { suggest } from "../../base/error-text.ts";
import { isRecord } from "../../base/record.ts";
import {
  expecting,
  type Fields,
  finite,
  flag,
  integer,
  list,
  live,
  object,
  string,
} from "../../base/settings.ts";

/** A model by its name, `provider/model`, or as the AI SDK makes it. */
export type ModelSource = string | LanguageModelV4;

/** One model, or several: if a model fails permanently, the next one answers. */
export type ProfileModel = ModelSource | readonly ModelSource[];

/** The `model` of a profile or a prompt. */
export const profileModel = live<ProfileModel>(
  (value) => {
    const old = [value].flat().find((item) => isRecord(item) && item.specificationVersion && !isModel(item));
    return isRecord(old)
      ? `a model of the AI SDK 7 (LanguageModelV4): this one is of version ${JSON.stringify(old.specificationVersion)}; update its provider's package`
      : "a text such as provider/model, a model of the AI SDK, or a list of them";
  },
  (value) => isSource(value) || (Array.isArray(value) && value.length > 0 && value.every(isSource)),
);

function isSource(value: unknown): boolean {
  return (typeof value === "string" && value !== "") || isModel(value);
}

/** A model object declares its version of the AI SDK's interface. */
function isModel(value: unknown): value is LanguageModelV4 {
  return isRecord(value) && value.specificationVersion === "v4";
}

/** Whether a value is a choice of `toolChoice`. */
export function isToolChoice(value: unknown): boolean {
  if (isRecord(value)) return typeof value.tool === "string" && Object.keys(value).length === 1;
  return value === "auto" || value === "none" || value === "required";
}

/**
 * Settings of model calls, under the names of the AI SDK.
 *
 * @example
 * import { createAgent } from "kit";
 *
 * export default createAgent({ instructions: "Answer briefly.", modelSettings: { temperature: 0, maxOutputTokens: 500 } });
 */
export const modelSettings = object(
  {
    temperature: finite,
    topP: finite,
    topK: finite,
    seed: z.int({ error: expecting("a whole number") }),
    maxOutputTokens: integer(1),
    presencePenalty: finite,
    frequencyPenalty: finite,
    stopSequences: list(string, "a list of texts"),
    /**
     * Whether the model calls tools. `"required"`, and a tool by its name, hold for the first answer of an operation: once
     * the tool was called, the model may end.
     */
    toolChoice: live<"auto" | "none" | "required" | { readonly tool: string }>(
      'auto, none, required or { tool: "<name>" }',
      isToolChoice,
    ),
    /** For one provider, under its name: `{ anthropic: { … } }`. */
    providerOptions: live<SharedV4ProviderOptions>(
      "an object of objects, by provider",
      (value) => isRecord(value) && Object.values(value).every(isRecord),
    ),
  },
  {
    of: "setting of a model",
    otherNames: {
      maxTokens: "maxOutputTokens",
      max_tokens: "maxOutputTokens",
      stop: "stopSequences",
      top_p: "topP",
    },
  },
);
export interface ModelSettings extends Fields<typeof modelSettings> {}

const builtInNames = [
  "read",
  "write",
  "edit",
  "stat",
  "exists",
  "mkdir",
  "rm",
  "bash",
  "grep",
  "glob",
  "task",
] as const;

/** A tool that kit has itself. */
export type BuiltInToolName = (typeof builtInNames)[number];

/** Names that a tool of the user's own cannot take. */
export const builtInToolNames: ReadonlySet<string> = new Set(builtInNames);

/** Whether a profile offers one of kit's own tools. */
export function offersBuiltIn(
  choice: boolean | readonly BuiltInToolName[] | undefined,
  name: string,
): boolean {
  return typeof choice === "object" ? choice.some((each) => each === name) : choice !== false;
}

/** Which of kit's own tools a profile offers. */
export const builtInTools = live<boolean | readonly BuiltInToolName[]>(
  (value) => {
    const form = `true, false or a list of ${builtInNames.join(", ")}`;
    const unknown = Array.isArray(value) ? value.find((name) => !builtInToolNames.has(name)) : undefined;
    const suggestion = typeof unknown === "string" ? suggest(unknown, builtInNames) : undefined;
    return suggestion === undefined ? form : `${form}; "${unknown}" is none: did you mean ${suggestion}?`;
  },
  (value) =>
    typeof value === "boolean" || (Array.isArray(value) && value.every((name) => builtInToolNames.has(name))),
);

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
