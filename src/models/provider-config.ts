import {
  amount,
  dictionary,
  flag,
  httpAddress,
  integer,
  table,
  tableWith,
  text,
  textLike,
} from "../base/settings.ts";
import type { Infer } from "../protocol/fields.ts";

/** The providers that kit knows: the variables with their keys, their default addresses, and the packages to install. */
export const knownProviders = {
  anthropic: {
    keys: ["ANTHROPIC_API_KEY"],
    baseUrl: "https://api.anthropic.com/v1",
    package: "@ai-sdk/anthropic",
    structuredOutput: "without_calls",
  },
  openai: {
    keys: ["OPENAI_API_KEY"],
    baseUrl: "https://api.openai.com/v1",
    package: "@ai-sdk/openai",
    structuredOutput: "always",
  },
  google: {
    keys: ["GOOGLE_GENERATIVE_AI_API_KEY", "GEMINI_API_KEY"],
    baseUrl: "https://generativelanguage.googleapis.com/v1beta",
    package: "@ai-sdk/google",
    structuredOutput: "without_tools",
  },
  openrouter: {
    keys: ["OPENROUTER_API_KEY"],
    baseUrl: "https://openrouter.ai/api/v1",
    package: "@ai-sdk/openai-compatible",
    structuredOutput: "never",
  },
  ollama: {
    keys: [],
    baseUrl: "http://127.0.0.1:11434/v1",
    package: "@ai-sdk/openai-compatible",
    structuredOutput: "never",
  },
} as const;

export type KnownProvider = keyof typeof knownProviders;

export function isKnownProvider(name: string): name is KnownProvider {
  return Object.hasOwn(knownProviders, name);
}

/** The package of a model's provider; undefined for a model that needs none, and for a text that names no model. */
export function packageOfModel(text: string): string | undefined {
  const [, provider] = /^([a-z][a-z0-9_-]*)[/:]\S+$/i.exec(text.trim()) ?? [];
  return provider === undefined || provider.toLowerCase() === "offline"
    ? undefined
    : packageOf(provider.toLowerCase());
}

/** The package of a provider; one that kit does not know speaks OpenAI's protocol. */
export function packageOf(provider: string): string {
  return isKnownProvider(provider) ? knownProviders[provider].package : "@ai-sdk/openai-compatible";
}

const priceTable = tableWith(
  {
    input: amount,
    output: amount,
  },
  { cache_read: amount, cache_write: amount },
);

/** The settings of a provider in the configuration (`providers.<name>`), under their names in the file. */
export const providerTable = table({
  /** Replaces the address of a known provider; a new name with an address is an OpenAI-compatible endpoint. */
  base_url: textLike("an address such as http://127.0.0.1:8080/v1", httpAddress, (address) =>
    URL.canParse(address),
  ),
  /** Default: the provider's variable in the environment. */
  api_key: text,
  headers: dictionary(text),
  /** Whether an OpenAI-compatible endpoint enforces a JSON Schema, also with tools. */
  structured_output: flag,
  /** If false, calls carry neither marks nor a key for the provider's prompt cache. Default true. */
  prompt_cache: flag,
  /** Limits per minute; calls above them wait. Default: no limit. */
  limits: table({
    requests_per_minute: integer(1, 1_000_000_000),
    /** Input and output tokens. Kit estimates the tokens of a call, and corrects the estimate by its usage. */
    tokens_per_minute: integer(1, 1_000_000_000_000),
  }),
  /** Per model, in US dollars per million tokens: for models without a known price, and for agreed prices. */
  prices: dictionary(priceTable),
  /** Per model, in tokens. */
  context_windows: dictionary(integer(1_000, 100_000_000)),
});
export interface ProviderConfig extends Infer<typeof providerTable> {}
export type ProviderConfigs = Readonly<Record<string, ProviderConfig>>;
export type ProviderLimits = NonNullable<ProviderConfig["limits"]>;
