import type { ModelPrice } from "../protocol/usage.ts";
import type { ProviderLimits } from "./provider-limiter.ts";

/** The settings of a provider in the configuration (`providers.<name>`), wire names as in the file. */
export interface ProviderConfig {
  /** For a known provider another address; a new name with one is an OpenAI-compatible endpoint. */
  readonly base_url?: string | undefined;
  /** Default: the provider's own variable in the environment. */
  readonly api_key?: string | undefined;
  readonly headers?: Readonly<Record<string, string>> | undefined;
  /** For an OpenAI-compatible endpoint: it makes JSON of a schema itself, also while tools are offered. */
  readonly structured_output?: boolean | undefined;
  /** False: calls carry no marks and no key for the prompt cache of the provider. Default true. */
  readonly prompt_cache?: boolean | undefined;
  /** Per model, where kit does not know the price, or another one was agreed. */
  readonly prices?: Readonly<Record<string, ModelPrice>> | undefined;
  /** Calls wait until the last minute has room for them; default: no limit of kit's. */
  readonly limits?: ProviderLimits | undefined;
  /** Per model, in tokens. */
  readonly context_windows?: Readonly<Record<string, number>> | undefined;
}

export type ProviderConfigs = Readonly<Record<string, ProviderConfig>>;

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
