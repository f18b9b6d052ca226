import { KitError } from "../base/kit-error.ts";
import type { ModelPrice } from "../protocol/message.ts";
import type { ModelChoice } from "../protocol/prompt.ts";

export interface KnownModel {
  /** Matches the model's name from its start. */
  readonly prefix: string;
  readonly contextWindowTokens: number;
  /**
   * The price of the model and its dated versions only: another model whose name starts the same may cost ten times as
   * much.
   */
  readonly price?: ModelPrice;
}

// Windows are those of the providers' model pages. Prices are list prices that held for a whole model generation;
// for other models `usage.cost` is null unless `providers.<name>.prices` sets a price.
const models: Readonly<Record<string, readonly KnownModel[]>> = {
  anthropic: [
    {
      prefix: "claude-opus-4-5",
      contextWindowTokens: 200_000,
      price: { input: 5, output: 25, cache_read: 0.5, cache_write: 6.25 },
    },
    {
      prefix: "claude-sonnet-4",
      contextWindowTokens: 200_000,
      price: { input: 3, output: 15, cache_read: 0.3, cache_write: 3.75 },
    },
    {
      prefix: "claude-haiku-4-5",
      contextWindowTokens: 200_000,
      price: { input: 1, output: 5, cache_read: 0.1, cache_write: 1.25 },
    },
    { prefix: "claude-", contextWindowTokens: 200_000 },
  ],
  openai: [
    { prefix: "gpt-5", contextWindowTokens: 272_000 },
    {
      prefix: "gpt-4.1-mini",
      contextWindowTokens: 1_000_000,
      price: { input: 0.4, output: 1.6, cache_read: 0.1 },
    },
    { prefix: "gpt-4.1", contextWindowTokens: 1_000_000, price: { input: 2, output: 8, cache_read: 0.5 } },
    {
      prefix: "gpt-4o-mini",
      contextWindowTokens: 128_000,
      price: { input: 0.15, output: 0.6, cache_read: 0.075 },
    },
    { prefix: "gpt-4o", contextWindowTokens: 128_000, price: { input: 2.5, output: 10, cache_read: 1.25 } },
  ],
  // List prices of ai.google.dev/gemini-api/docs/pricing as of 2026-10; a read from the cache costs a tenth of the input. That share
  // is of third-party copies of the list (2025-11 to 2026-10): Google's page itself could not be read.
  google: [
    {
      prefix: "gemini-2.5-flash-lite",
      contextWindowTokens: 1_000_000,
      price: { input: 0.1, output: 0.4, cache_read: 0.01 },
    },
    {
      prefix: "gemini-2.5-flash",
      contextWindowTokens: 1_000_000,
      price: { input: 0.3, output: 2.5, cache_read: 0.03 },
    },
    { prefix: "gemini-", contextWindowTokens: 1_000_000 },
  ],
};

/** Returns the facts that kit knows about a model; `undefined` for an unknown one. */
export function knownModel(name: ModelName): KnownModel | undefined {
  const known = Object.hasOwn(models, name.provider)
    ? models[name.provider]?.find((model) => name.model.startsWith(model.prefix))
    : undefined;
  if (known === undefined || versionPattern.test(name.model.slice(known.prefix.length))) return known;
  const { price, ...unpriced } = known;
  return unpriced;
}

const versionPattern = /^(-(\d+|latest))*$/;

/** The two parts of a model string. */
export interface ModelName {
  readonly provider: string;
  readonly model: string;
}

/** A model string: its provider and its model. */
export const modelForm = /^([a-z][a-z0-9_-]*)[/:](\S+)$/i;

/**
 * Parses `provider/model` or `provider:model`. The name of the model may contain both characters, as in
 * `openrouter/meta-llama/llama-4:free`. Throws `invalid_request` for anything else.
 */
export function parseModelName(text: string): ModelName {
  const match = modelForm.exec(text.trim());
  if (match?.[1] === undefined || match[2] === undefined) {
    throw new KitError({
      code: "invalid_request",
      message: `"${text}" does not name a model.`,
      hint: "Write provider/model, such as anthropic/claude-sonnet-4-6 or offline/guide.",
    });
  }
  return { provider: match[1].toLowerCase(), model: match[2] };
}

/** The accepted forms of a model string, for messages. */
export const modelChoiceForm = "a text such as provider/model, or a list of such texts";

export function isModelChoice(value: unknown): value is ModelChoice {
  const names = [value].flat();
  return names.length > 0 && names.every((item) => typeof item === "string");
}
