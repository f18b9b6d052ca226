import { amount, dictionary, flag, integer, table, tableWith, text, textLike } from "../base/settings.ts";
import type { Infer } from "../protocol/fields.ts";

/** The providers kit knows, the variables that hold their keys, and what to install for them. */
export const knownProviders = {
  anthropic: { keys: ["ANTHROPIC_API_KEY"], package: "@ai-sdk/anthropic", structuredOutput: "without_calls" },
  openai: { keys: ["OPENAI_API_KEY"], package: "@ai-sdk/openai", structuredOutput: "always" },
  google: {
    keys: ["GOOGLE_GENERATIVE_AI_API_KEY", "GEMINI_API_KEY"],
    package: "@ai-sdk/google",
    structuredOutput: "without_tools",
  },
  openrouter: {
    keys: ["OPENROUTER_API_KEY"],
    package: "@ai-sdk/openai-compatible",
    structuredOutput: "never",
  },
  ollama: { keys: [], package: "@ai-sdk/openai-compatible", structuredOutput: "never" },
} as const;

export type KnownProvider = keyof typeof knownProviders;

export function isKnownProvider(name: string): name is KnownProvider {
  return Object.hasOwn(knownProviders, name);
}

/** Where OpenAI-compatible providers live unless the configuration says otherwise. */
export const compatibleBaseUrls: Readonly<Record<string, string>> = {
  openrouter: "https://openrouter.ai/api/v1",
  ollama: "http://127.0.0.1:11434/v1",
};

const priceTable = tableWith(
  {
    input: amount,
    output: amount,
  },
  { cache_read: amount, cache_write: amount },
);

/** The settings of a provider in the configuration (`providers.<name>`), wire names as in the file. */
export const providerTable = table({
  /** For a known provider another address; a new name with one is an OpenAI-compatible endpoint. */
  base_url: textLike(
    "an address such as http://127.0.0.1:8080/v1",
    (address) => /^https?:\/\//i.test(address) && URL.canParse(address),
  ),
  /** Default: the provider's own variable in the environment. */
  api_key: text,
  headers: dictionary(text),
  /** For an OpenAI-compatible endpoint: it makes JSON of a schema itself, also while tools are offered. */
  structured_output: flag,
  /** False: calls carry no marks and no key for the prompt cache of the provider. Default true. */
  prompt_cache: flag,
  /** Calls wait until the last minute has room for them; default: no limit of kit's. */
  limits: table({
    requests_per_minute: integer(1, 1_000_000_000),
    /** Tokens in and out; what a call takes is estimated before it, and put right by its usage. */
    tokens_per_minute: integer(1, 1_000_000_000_000),
  }),
  /** Per model, in US dollars per million tokens, where kit does not know the price, or another one was agreed. */
  prices: dictionary(priceTable),
  /** Per model, in tokens. */
  context_windows: dictionary(integer(1_000, 100_000_000)),
});
export interface ProviderConfig extends Infer<typeof providerTable> {}
export type ProviderConfigs = Readonly<Record<string, ProviderConfig>>;
export type ProviderLimits = NonNullable<ProviderConfig["limits"]>;
