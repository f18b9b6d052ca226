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
