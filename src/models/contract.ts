import type { LanguageModelV4, LanguageModelV4CallOptions, SharedV4ProviderOptions } from "@ai-sdk/provider";
import type { ModelPrice } from "../protocol/message.ts";
import type { SessionKey } from "../protocol/session-entry.ts";
import type { ServerAddress } from "../protocol/tracing.ts";

/** The model of a model string, and the facts that kit knows about it. */
export interface ResolvedModel {
  /** `provider/model`. */
  readonly name: string;
  readonly model: LanguageModelV4;
  /** Tokens; for an unknown model, the configured default applies. */
  readonly contextWindowTokens?: number | undefined;
  readonly price?: ModelPrice | undefined;
  /**
   * The files that the model reads in addition to pictures: `types` of files sent as bytes, `urls` of files that it fetches
   * by their address; `audio/*` for all of a kind. Default: unknown, and kit sends every file.
   */
  readonly files?: { readonly types: readonly string[]; readonly urls: readonly string[] };
  /** The host that answers, if kit knows its address. */
  readonly server?: ServerAddress | undefined;
  /** Delays calls to the configured limit per minute; shared by all models of the provider. */
  readonly limiter?: CallLimiter | undefined;
  /** The model only quotes its input, so kit does not let it write summaries. */
  readonly quotesOnly?: boolean | undefined;
  /**
   * Whether the provider enforces a JSON Schema: also with tools (`always`), with tools that the model must not call
   * (`without_calls`), or only without tools (`without_tools`).
   */
  readonly structuredOutput: "never" | "without_tools" | "without_calls" | "always";
  /** Options for a schema that the provider cannot enforce strictly, such as one with optional fields. */
  readonly looseSchemaOptions?: SharedV4ProviderOptions | undefined;
  /** Missing if the provider caches without marks, or if the configuration turns caching off. */
  readonly promptCache?: PromptCache | undefined;
}

/**
 * Marks a call so that the provider caches the beginning of the prompt for the next call. The messages belong to the
 * session, so marks are added to copies.
 */
export type PromptCache = (
  options: LanguageModelV4CallOptions,
  session: SessionKey,
) => LanguageModelV4CallOptions;

/** Resolves a model string. Throws `invalid_request` for an unknown provider, `unavailable` without a key. */
export type ModelResolver = (name: string) => Promise<ResolvedModel>;

/** Delays the calls of a provider to a limit. */
export interface CallLimiter {
  /**
   * Resolves when a call of about `tokens` tokens fits into the limit. A call above the limit of a minute waits until no
   * other call counts. Rejects with the signal's reason.
   */
  admit(tokens: number, signal: AbortSignal): Promise<Admission>;
}

/** An admitted call. */
export interface Admission {
  /** Replaces the estimate with the tokens that the provider counted. */
  settle(tokens: number): void;
}
