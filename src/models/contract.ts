import type { LanguageModelV4, LanguageModelV4CallOptions, SharedV4ProviderOptions } from "@ai-sdk/provider";
import type { ModelPrice } from "../protocol/message.ts";
import type { SessionKey } from "../protocol/session-entry.ts";

/** A model string, resolved: the model, and what kit knows of it. */
export interface ResolvedModel {
  /** `provider/model`. */
  readonly name: string;
  readonly model: LanguageModelV4;
  /** Tokens; the configured default where the model is not known. */
  readonly contextWindowTokens?: number | undefined;
  readonly price?: ModelPrice | undefined;
  /**
   * Files beside pictures that it reads: media types (`audio/*` for a whole kind) of bytes, and of those that it
   * fetches by their address. Default: kit does not know, and passes all on.
   */
  readonly files?: { readonly types: readonly string[]; readonly urls: readonly string[] };
  /** Holds calls back to what its provider allows in a minute; shared by the provider's models. */
  readonly limiter?: CallLimiter | undefined;
  /** It quotes what it is given and writes nothing of its own: a summary of its making would say nothing. */
  readonly quotesOnly?: boolean | undefined;
  /**
   * Whether the provider makes JSON of a schema itself: also while tools are offered (`always`), while they are offered and may
   * not be called (`without_calls`), or without any (`without_tools`).
   */
  readonly structuredOutput: "never" | "without_tools" | "without_calls" | "always";
  /** Sent along with a schema that the provider cannot enforce to the letter, such as one with optional fields. */
  readonly looseSchemaOptions?: SharedV4ProviderOptions | undefined;
  /** Absent where the provider caches by itself, or is not to. */
  readonly promptCache?: PromptCache | undefined;
}

/**
 * Adds to a call what its provider needs to keep the beginning of the prompt for the next call. The history is the
 * session's own: what is added stands in copies.
 */
export type PromptCache = (
  options: LanguageModelV4CallOptions,
  session: SessionKey,
) => LanguageModelV4CallOptions;

/** Resolves a model string. Throws `invalid_request` for an unknown provider, `unavailable` without a key. */
export type ModelResolver = (name: string) => Promise<ResolvedModel>;

/** Holds calls of a provider back until there is room for them. */
export interface CallLimiter {
  /**
   * Resolves when a call of about so many tokens may be made. One that is larger than the limit of a minute
   * waits for a minute of its own. Rejects with the signal's reason.
   */
  admit(tokens: number, signal: AbortSignal): Promise<Admission>;
}

/** A call that was let through. */
export interface Admission {
  /** Puts the estimate right: the tokens that the provider counted. */
  settle(tokens: number): void;
}
