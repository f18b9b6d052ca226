import type {
  LanguageModelV4,
  LanguageModelV4CallOptions,
  LanguageModelV4Message,
  SharedV4ProviderOptions,
} from "@ai-sdk/provider";
import { type Clock, systemClock } from "../base/clock.ts";
import { digestOf } from "../base/id.ts";
import { KitError } from "../base/kit-error.ts";
import { defined } from "../base/record.ts";
import type { SessionKey } from "../protocol/session-entry.ts";
import type { ModelResolver, PromptCache, ResolvedModel } from "./contract.ts";
import { knownModel, type ModelName, modelForm, parseModelName } from "./known-models.ts";
import { createOfflineGuide } from "./offline/offline-guide.ts";
import {
  isKnownProvider,
  knownProviders,
  type ProviderConfig,
  type ProviderConfigs,
  packageOf,
} from "./provider-config.ts";
import type { ProviderLimiter } from "./provider-limiter.ts";
import type { Recorder } from "./recording/record-fetch.ts";

export interface ModelResolverOptions {
  readonly providers?: ProviderConfigs | undefined;
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Models of the caller by their full name; tests pass the scripted model here. */
  readonly models?: Readonly<Record<string, LanguageModelV4>> | undefined;
  /** Replaces `fetch` for requests to providers: a recorder, or a recording that answers. */
  readonly fetchFor?: Recorder | undefined;
  /** The clock for `limits`; default: the clock of the system. */
  readonly clock?: Clock | undefined;
}

/**
 * Resolves model strings to AI SDK models. The first model of a provider loads the provider's package; each model is
 * created once.
 */
export function createModelResolver(options: ModelResolverOptions): ModelResolver {
  const made = new Map<string, Promise<ResolvedModel>>();
  const limiters = new Map<string, ProviderLimiter>();
  const limiterOf = async (provider: string): Promise<ProviderLimiter | undefined> => {
    const { limits } = configOf(provider, options);
    if (limits === undefined) return undefined;
    const { ProviderLimiter } = await import("./provider-limiter.ts");
    const limiter = limiters.get(provider) ?? new ProviderLimiter(limits, options.clock ?? systemClock);
    limiters.set(provider, limiter);
    return limiter;
  };
  return (text) => {
    let resolved = made.get(text);
    if (resolved === undefined) {
      resolved = resolve(text, { ...options, limiterOf });
      made.set(text, resolved);
      resolved.catch(() => made.delete(text));
    }
    return resolved;
  };
}

/** The model for a project that names none: that of the first provider with a key, else the offline guide. */
export function defaultModelName(options: ModelResolverOptions): string {
  return modelsWithKeys(options)[0] ?? "offline/guide";
}

/** The default models of the providers that have a key. */
export function modelsWithKeys(options: ModelResolverOptions): readonly string[] {
  return Object.entries(defaultModels).flatMap(([provider, model]) =>
    keyOf(provider, options) === undefined ? [] : [`${provider}/${model}`],
  );
}

/** The model of a provider when neither the caller nor the project names one. */
export const defaultModels: Readonly<Record<string, string>> = {
  anthropic: "claude-sonnet-4-6",
  openai: "gpt-5.1",
  google: "gemini-2.5-pro",
  openrouter: "anthropic/claude-sonnet-4.5",
};

interface ResolveOptions extends ModelResolverOptions {
  readonly limiterOf: (provider: string) => Promise<ProviderLimiter | undefined>;
}

async function resolve(text: string, options: ResolveOptions): Promise<ResolvedModel> {
  const own =
    options.models !== undefined && Object.hasOwn(options.models, text) ? options.models[text] : undefined;
  if (own !== undefined) return { name: text, model: own, structuredOutput: "never", ...cacheOf(own, {}) };
  const name = parseModelName(text);
  const fullName = `${name.provider}/${name.model}`;
  if (name.provider === "offline") {
    if (name.model !== "guide") throw unknownModel(fullName);
    return {
      name: fullName,
      model: createOfflineGuide(),
      structuredOutput: "never",
      quotesOnly: true,
      price: { input: 0, output: 0 },
    };
  }
  const config = configOf(name.provider, options);
  const known = knownModel(name);
  const price = ownOf(config.prices, name.model) ?? known?.price;
  const limiter = await options.limiterOf(name.provider);
  const contextWindowTokens = contextWindowOf(fullName, options.providers);
  const model = await load(name, config, options);
  return {
    name: fullName,
    model,
    ...structuredOutputOf(name, config),
    files: filesOf(name),
    ...cacheOf(model, config),
    price,
    limiter,
    contextWindowTokens,
    server: serverAt(config.base_url ?? baseUrlOf(name.provider, options.env)),
  };
}

/** The context window of a model in tokens: that of the configuration, else the known one; a backend of others can name no model. */
export function contextWindowOf(text: string, providers: ProviderConfigs | undefined): number | undefined {
  if (!modelForm.test(text)) return undefined;
  const name = parseModelName(text);
  const { context_windows } = configOf(name.provider, { providers });
  return ownOf(context_windows, name.model) ?? knownModel(name)?.contextWindowTokens;
}

function serverAt(url: string | undefined): ResolvedModel["server"] {
  if (url === undefined || !URL.canParse(url)) return undefined;
  const { hostname, port, protocol } = new URL(url);
  return { address: hostname, port: port === "" ? (protocol === "http:" ? 80 : 443) : Number(port) };
}

function cacheOf(model: LanguageModelV4, config: ProviderConfig): Pick<ResolvedModel, "promptCache"> {
  const promptCache = config.prompt_cache === false ? undefined : promptCacheOf(model);
  return promptCache === undefined ? {} : { promptCache };
}

/** Claude enforces schemas since Opus 4.1 and Sonnet 4.5; for older models the SDK replaces all tools with a forced one. */
const makesJson = /^claude-[a-z]+-(?:4-[1-9](?!\d)|[5-9])/;

function structuredOutputOf(
  { provider, model }: ModelName,
  config: ProviderConfig,
): Pick<ResolvedModel, "structuredOutput" | "looseSchemaOptions"> {
  const known = isKnownProvider(provider) ? knownProviders[provider].structuredOutput : "never";
  const ofModel = known === "without_calls" && !makesJson.test(model) ? "without_tools" : known;
  const structuredOutput = config.structured_output === true ? "always" : ofModel;
  // Providers of this kind enforce a schema strictly by default.
  return structuredOutput === "always"
    ? { structuredOutput, looseSchemaOptions: { [provider]: { strictJsonSchema: false } } }
    : { structuredOutput };
}

/** The files that the provider's package sends; a single model may refuse some of them. */
function filesOf({ provider, model }: ModelName): NonNullable<ResolvedModel["files"]> {
  const pdf = "application/pdf";
  switch (provider) {
    case "anthropic":
      return { types: [pdf, "text/plain"], urls: [pdf, "text/plain"] };
    case "google":
      return { types: [pdf, "text/plain", "audio/*", "video/*"], urls: [] };
    case "openai":
      if (isAudioModel(model)) return { types: [pdf, "audio/wav", "audio/mp3", "audio/mpeg"], urls: [] };
      return { types: [pdf], urls: [pdf] };
    default:
      return { types: [pdf, "audio/wav", "audio/mp3", "audio/mpeg"], urls: [] };
  }
}

/** `gpt-audio`, `gpt-4o-audio-preview`: OpenAI serves them by chat completions only. */
function isAudioModel(model: string): boolean {
  return /(^|-)audio(-|$)/.test(model);
}

async function load(
  name: ModelName,
  config: ProviderConfig,
  options: ModelResolverOptions,
): Promise<LanguageModelV4> {
  const { provider, model } = name;
  const headers = config.headers === undefined ? {} : { headers: { ...config.headers } };
  const baseURL = config.base_url ?? baseUrlOf(provider, options.env);
  const { fetchFor } = options;
  const own = { ...headers, ...(fetchFor === undefined ? {} : { fetch: fetchFor(`${provider}/${model}`) }) };
  const base = defined({ baseURL });
  switch (provider) {
    case "anthropic": {
      const { createAnthropic } = await loadPackage(provider, () => import("@ai-sdk/anthropic"));
      return createAnthropic({ apiKey: requiredKey(provider, options), ...base, ...own })(model);
    }
    case "openai": {
      const { createOpenAI } = await loadPackage(provider, () => import("@ai-sdk/openai"));
      const openai = createOpenAI({ apiKey: requiredKey(provider, options), ...base, ...own });
      return isAudioModel(model) ? openai.chat(model) : openai(model);
    }
    case "google": {
      const { createGoogle } = await loadPackage(provider, () => import("@ai-sdk/google"));
      return createGoogle({ apiKey: requiredKey(provider, options), ...base, ...own })(model);
    }
    default: {
      if (baseURL === undefined) throw unknownProvider(provider, options);
      const { createOpenAICompatible } = await loadPackage(
        provider,
        () => import("@ai-sdk/openai-compatible"),
      );
      const apiKey = provider === "openrouter" ? requiredKey(provider, options) : keyOf(provider, options);
      const settings = {
        name: provider,
        baseURL,
        includeUsage: true,
        ...(config.structured_output === true ? { supportsStructuredOutputs: true } : {}),
        ...own,
        ...(apiKey === undefined ? {} : { apiKey }),
      };
      return createOpenAICompatible(settings)(model);
    }
  }
}

/** Roles and profiles name models: one called "constructor" has no price unless the configuration sets it. */
function ownOf<Value>(table: Readonly<Record<string, Value>> | undefined, name: string): Value | undefined {
  return table !== undefined && Object.hasOwn(table, name) ? table[name] : undefined;
}

function configOf(provider: string, options: Pick<ModelResolverOptions, "providers">): ProviderConfig {
  // Names of providers in model strings are read in any case, and so are those of the configuration.
  const found = Object.entries(options.providers ?? {}).find(([name]) => name.toLowerCase() === provider);
  return found?.[1] ?? {};
}

/** The variables with addresses that the packages of providers read. */
const addressVariables: Readonly<Record<string, string>> = {
  anthropic: "ANTHROPIC_BASE_URL",
  openai: "OPENAI_BASE_URL",
};

/** Always an address for a known provider: its package would look it up in `process.env`, which any code can change. */
function baseUrlOf(provider: string, env: ModelResolverOptions["env"]): string | undefined {
  if (!isKnownProvider(provider)) return undefined;
  const written = env[ownOf(addressVariables, provider) ?? ""]?.trim();
  return written === undefined || written === "" ? knownProviders[provider].baseUrl : written;
}

function keyOf(provider: string, options: ModelResolverOptions): string | undefined {
  const configured = configOf(provider, options).api_key;
  if (configured !== undefined) return configured;
  if (!isKnownProvider(provider)) return undefined;
  for (const variable of knownProviders[provider].keys) {
    const value = options.env[variable];
    if (value !== undefined && value !== "") return value;
  }
  return undefined;
}

function requiredKey(provider: keyof typeof knownProviders, options: ModelResolverOptions): string {
  const key = keyOf(provider, options);
  if (key !== undefined) return key;
  throw new KitError({
    code: "unavailable",
    message: `There is no key for ${provider}.`,
    hint: `Set ${knownProviders[provider].keys[0]}, or providers.${provider}.api_key in the configuration; offline/guide needs none.`,
  });
}

async function loadPackage<Module>(provider: string, load: () => Promise<Module>): Promise<Module> {
  try {
    return await load();
  } catch (error) {
    throw missingPackage(provider, error);
  }
}

function missingPackage(provider: string, cause: unknown): KitError {
  const name = packageOf(provider);
  return new KitError({
    code: "unavailable",
    message: `The package for ${provider} models, ${name}, is not installed.`,
    hint: `Run: npm install ${name}`,
    cause,
  });
}

function unknownProvider(provider: string, options: ModelResolverOptions): KitError {
  const names = ["offline", ...Object.keys(knownProviders), ...Object.keys(options.providers ?? {})];
  return new KitError({
    code: "invalid_request",
    message: `There is no provider named "${provider}".`,
    hint: `The providers are: ${[...new Set(names)].join(", ")}. Add an OpenAI-compatible one with providers.${provider}.base_url.`,
  });
}

function unknownModel(name: string): KitError {
  return new KitError({
    code: "invalid_request",
    message: `There is no model "${name}".`,
    hint: "The offline model is offline/guide.",
  });
}

/** Returns the marks for a provider's prompt cache; `undefined` for a provider that needs none. */
function promptCacheOf({ provider, modelId }: LanguageModelV4): PromptCache | undefined {
  if (/(^|\.)anthropic(\.|$)/.test(provider)) return withBreakpoints;
  if (/^openai\.(chat|responses)$/.test(provider)) return withCacheKey;
  // OpenRouter itself marks the newest message of each request, for models that need marks.
  if (provider.startsWith("openrouter.") && modelId.startsWith("anthropic/")) return withRequestMark;
  return undefined;
}

const mark: SharedV4ProviderOptions = { anthropic: { cacheControl: { type: "ephemeral" } } };

/**
 * Anthropic allows four marks. They go to the last tool, the system prompt, the end of the prompt, and the end of the
 * previous prompt: the provider then finds the cache entry of the previous call, however many blocks follow it.
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
  // A tool that the provider runs cannot carry a mark.
  if (tools === undefined || lastTool?.type !== "function") return { ...options, prompt };
  return { ...options, prompt, tools: [...tools.slice(0, -1), marked(lastTool)] };
}

/** Anthropic refuses a mark on an empty text, and on reasoning. */
function mayBeMarked(message: LanguageModelV4Message): boolean {
  if (message.role === "tool") return true;
  if (message.role !== "user") return false;
  const part = message.content.at(-1);
  return part !== undefined && (part.type !== "text" || part.text !== "");
}

function marked<Item extends { readonly providerOptions?: SharedV4ProviderOptions }>(item: Item): Item {
  return { ...item, providerOptions: withOptions(item.providerOptions, mark) };
}

/** Routes the requests of one session to the same cache. */
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

/** Session names may be those of people, so the key is a digest. */
function cacheKeyOf({ agent, instance_id, session }: SessionKey): string {
  return `kit_${digestOf(JSON.stringify([agent, instance_id, session]))}`;
}
