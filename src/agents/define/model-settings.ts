import type { LanguageModelV4, SharedV4ProviderOptions } from "@ai-sdk/provider";
import * as z from "zod/mini";
import { isRecord } from "../../base/is-record.ts";
import { expecting, type Fields, finite, integer, list, live, object, string } from "../../base/settings.ts";
import { suggest } from "../../base/suggest.ts";

/** A model by its name, `provider/model`, or as the AI SDK makes it. */
export type ModelSource = string | LanguageModelV4;

/** One model, or several: where one fails for good, the next one answers. */
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

/** A model object says which version of the AI SDK's interface it has. */
function isModel(value: unknown): value is LanguageModelV4 {
  return isRecord(value) && value.specificationVersion === "v4";
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
    toolChoice: z.union([z.enum(["auto", "none", "required"]), z.object({ tool: z.string() })], {
      error: expecting('auto, none, required or { tool: "<name>" }'),
    }),
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
    const near = typeof unknown === "string" ? suggest(unknown, builtInNames) : undefined;
    return near === undefined ? form : `${form}; "${unknown}" is none: did you mean ${near}?`;
  },
  (value) =>
    typeof value === "boolean" || (Array.isArray(value) && value.every((name) => builtInToolNames.has(name))),
);
