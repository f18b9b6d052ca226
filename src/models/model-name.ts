import { KitError } from "../base/kit-error.ts";
import type { ModelChoice } from "../protocol/prompt.ts";

/** A model string in its two parts. */
export interface ModelName {
  readonly provider: string;
  readonly model: string;
}

/**
 * Parses `provider/model` or `provider:model`. The model's own name may hold both signs, as in
 * `openrouter/meta-llama/llama-4:free`. Throws `invalid_request` for anything else.
 */
export function parseModelName(text: string): ModelName {
  const match = /^([a-z][a-z0-9_-]*)[/:](\S+)$/i.exec(text.trim());
  if (match?.[1] === undefined || match[2] === undefined) {
    throw new KitError({
      code: "invalid_request",
      message: `"${text}" does not name a model.`,
      hint: "Write provider/model, such as anthropic/claude-sonnet-4-6 or offline/guide.",
    });
  }
  return { provider: match[1].toLowerCase(), model: match[2] };
}

/** The forms of a model that can be written down, for messages. */
export const modelChoiceForm = "a text such as provider/model, or a list of such texts";

export function isModelChoice(value: unknown): value is ModelChoice {
  const names = [value].flat();
  return names.length > 0 && names.every((item) => typeof item === "string");
}
