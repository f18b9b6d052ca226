import type {
  LanguageModelV4,
  LanguageModelV4CallOptions,
  LanguageModelV4Message,
  SharedV4ProviderOptions,
} from "@ai-sdk/provider";
import { digestOf } from "../base/id.ts";
import type { SessionKey } from "../protocol/session-entry.ts";
import type { PromptCache } from "./contract.ts";

/** How kit tells a provider about caching; undefined for one that caches by itself, or not at all. */
export function promptCacheOf({ provider, modelId }: LanguageModelV4): PromptCache | undefined {
  if (/(^|\.)anthropic(\.|$)/.test(provider)) return withBreakpoints;
  if (/^openai\.(chat|responses)$/.test(provider)) return withCacheKey;
  // OpenRouter marks the newest message of each request itself, for the models that want marks.
  if (provider.startsWith("openrouter.") && modelId.startsWith("anthropic/")) return withRequestMark;
  return undefined;
}

const mark: SharedV4ProviderOptions = { anthropic: { cacheControl: { type: "ephemeral" } } };

/**
 * Marks, of the four places that Anthropic allows, the last tool, the system prompt, the end of the prompt, and the
 * end of the prompt before it: what that call has written is found again, however many blocks have come since.
 */
function withBreakpoints(options: LanguageModelV4CallOptions): LanguageModelV4CallOptions {
  const prompt = options.prompt.slice();
  const system = prompt[0];
  if (system?.role === "system") prompt[0] = marked(system);
  const last = prompt.length - 1;
  const answer = prompt.findLastIndex(({ role }) => role === "assistant");
  for (const index of new Set([answer - 1, last])) {
    const message = prompt[index];
    if (message !== undefined && mayBeMarked(message)) prompt[index] = marked(message);
  }
  const { tools } = options;
  const lastTool = tools?.at(-1);
  // A tool that the provider itself runs has no place for a mark.
  if (tools === undefined || lastTool?.type !== "function") return { ...options, prompt };
  return { ...options, prompt, tools: [...tools.slice(0, -1), marked(lastTool)] };
}

/** Anthropic refuses a mark on an empty text, and on what a model has thought. */
function mayBeMarked(message: LanguageModelV4Message): boolean {
  if (message.role === "tool") return true;
  if (message.role !== "user") return false;
  const part = message.content.at(-1);
  return part !== undefined && (part.type !== "text" || part.text !== "");
}

function marked<Item extends { readonly providerOptions?: SharedV4ProviderOptions }>(item: Item): Item {
  return { ...item, providerOptions: withOptions(item.providerOptions, mark) };
}

/** Sends the requests of one session where the beginning of its prompt is kept. */
function withCacheKey(options: LanguageModelV4CallOptions, session: SessionKey): LanguageModelV4CallOptions {
  const openai = { promptCacheKey: cacheKeyOf(session) };
  return { ...options, providerOptions: withOptions(options.providerOptions, { openai }) };
}

function withRequestMark(options: LanguageModelV4CallOptions): LanguageModelV4CallOptions {
  const openrouter = { cache_control: { type: "ephemeral" } };
  return { ...options, providerOptions: withOptions(options.providerOptions, { openrouter }) };
}

/** Adds fields to the options of each provider; a given field wins over an added one. */
function withOptions(
  given: SharedV4ProviderOptions | undefined,
  added: SharedV4ProviderOptions,
): SharedV4ProviderOptions {
  const options: SharedV4ProviderOptions = { ...given };
  for (const [provider, fields] of Object.entries(added))
    options[provider] = { ...fields, ...given?.[provider] };
  return options;
}

/** The names of a session may be those of people: its key says none of them. */
function cacheKeyOf({ agent, instance_id, session }: SessionKey): string {
  return `kit_${digestOf(JSON.stringify([agent, instance_id, session]))}`;
}
