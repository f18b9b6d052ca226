import { KitError } from "../base/kit-error.ts";

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
