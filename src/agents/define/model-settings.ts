import type { LanguageModelV4, SharedV4ProviderOptions } from "@ai-sdk/provider";
import { suggest } from "../../base/suggest.ts";
import { count, type FieldCheck, type FieldChecks, isObject, texts } from "./check-fields.ts";

/** A model by its name, `provider/model`, or as the AI SDK makes it. */
export type ModelSource = string | LanguageModelV4;

/** One model, or several: where one fails for good, the next one answers. */
export type ProfileModel = ModelSource | readonly ModelSource[];

/**
 * Settings of model calls, under the names of the AI SDK.
 *
 * @example
 * import { createAgent } from "kit";
 *
 * export default createAgent({ instructions: "Answer briefly.", modelSettings: { temperature: 0, maxOutputTokens: 500 } });
 */
export interface ModelSettings {
  readonly temperature?: number | undefined;
  readonly topP?: number | undefined;
  readonly topK?: number | undefined;
  readonly seed?: number | undefined;
  readonly maxOutputTokens?: number | undefined;
  readonly presencePenalty?: number | undefined;
  readonly frequencyPenalty?: number | undefined;
  readonly stopSequences?: readonly string[] | undefined;
  /**
   * Whether the model calls tools. `"required"`, and a tool by its name, hold for the first answer of an operation: once
   * the tool was called, the model may end.
   */
  readonly toolChoice?: "auto" | "none" | "required" | { readonly tool: string } | undefined;
  /** For one provider, under its name: `{ anthropic: { … } }`. */
  readonly providerOptions?: SharedV4ProviderOptions | undefined;
}

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

export const builtInTools: FieldCheck = [
  (value) => {
    const form = `true, false or a list of ${builtInNames.join(", ")}`;
    const unknown = Array.isArray(value) ? value.find((name) => !builtInToolNames.has(name)) : undefined;
    const near = typeof unknown === "string" ? suggest(unknown, builtInNames) : undefined;
    return near === undefined ? form : `${form}; "${unknown}" is none: did you mean ${near}?`;
  },
  (value) =>
    typeof value === "boolean" || (Array.isArray(value) && value.every((name) => builtInToolNames.has(name))),
];

const number: FieldCheck = ["a number", (value) => typeof value === "number" && Number.isFinite(value)];
const fields: FieldChecks<ModelSettings> = {
  temperature: number,
  topP: number,
  topK: number,
  seed: ["a whole number", Number.isInteger],
  maxOutputTokens: count(1),
  presencePenalty: number,
  frequencyPenalty: number,
  stopSequences: texts,
  toolChoice: [
    'auto, none, required or { tool: "<name>" }',
    (value) =>
      value === "auto" ||
      value === "none" ||
      value === "required" ||
      (isObject(value) && "tool" in value && typeof value.tool === "string"),
  ],
  providerOptions: [
    "an object of objects, by provider",
    (value) => isObject(value) && Object.values(value).every(isObject),
  ],
};

export const modelSettings: FieldCheck = {
  of: "setting of a model",
  fields,
  otherNames: {
    maxTokens: "maxOutputTokens",
    max_tokens: "maxOutputTokens",
    stop: "stopSequences",
    top_p: "topP",
  },
};

/** A model object says which version of the AI SDK's interface it has. */
function isModel(value: unknown): value is LanguageModelV4 {
  return isObject(value) && "specificationVersion" in value && value.specificationVersion === "v4";
}

const isSource = (value: unknown): boolean => (typeof value === "string" && value !== "") || isModel(value);

/** Checks the `model` of a profile or a prompt. */
export const profileModel: FieldCheck = [
  (value) => {
    const old = [value]
      .flat()
      .find((item) => isObject(item) && "specificationVersion" in item && !isModel(item));
    return old === undefined
      ? "a text such as provider/model, a model of the AI SDK, or a list of them"
      : `a model of the AI SDK 7 (LanguageModelV4): this one is of version ${JSON.stringify(Reflect.get(Object(old), "specificationVersion"))}; update its provider's package`;
  },
  (value) => isSource(value) || (Array.isArray(value) && value.length > 0 && value.every(isSource)),
];
