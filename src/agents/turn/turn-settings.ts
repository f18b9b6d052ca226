import type { LanguageModelV4CallOptions, SharedV4ProviderOptions } from "@ai-sdk/provider";
import { KitError } from "../../base/kit-error.ts";
import { defined } from "../../base/record.ts";
import type { EventCallSettings } from "../../protocol/event.ts";
import type { CallerTool, PromptToolChoice } from "../../protocol/prompt.ts";
import type { Toolkit } from "../agent-runtime.ts";
import type { AgentProfile } from "../define/agent-profile.ts";
import type { CompactionSettings, ModelSettings } from "../define/profile-settings.ts";

export interface TurnSettings {
  readonly modelSettings: ModelSettings | undefined;
  /** The only tools of the first turn, if the caller forces one of its own. */
  readonly forcedTools: readonly string[] | undefined;
}

/** The settings and tools that a call has for its turns. */
interface CallSources {
  readonly modelSettings?: ModelSettings | undefined;
  readonly callerToolChoice?: PromptToolChoice | undefined;
  readonly callerTools?: readonly Pick<CallerTool, "name">[] | undefined;
}

/** The settings of turns: those of the call over those of the profile. Throws `invalid_request` for a choice that no turn can fulfil. */
export function turnSettings(
  base: ModelSettings | undefined,
  { modelSettings: over, callerToolChoice, callerTools = [] }: CallSources,
  { tools }: Toolkit,
): TurnSettings {
  if ((base ?? over ?? callerToolChoice) === undefined) return noChoice;
  const merged = { ...base, ...defined(over ?? {}) };
  // A caller forces no call of the agent's own tools besides its own, and one tool needs no other list.
  const [only] = callerTools;
  const forcesOwn = callerToolChoice === "required" && only !== undefined;
  const chosen = forcesOwn && callerTools.length === 1 ? { tool: only.name } : callerToolChoice;
  const forces = chosen === "required" || typeof chosen === "object";
  if (merged.toolChoice === "none" && forces)
    throw new KitError({
      code: "invalid_request",
      message: "`tool_choice` cannot force a call: this agent calls no tools.",
      hint: "Leave `tool_choice` out. `modelSettings.toolChoice` of the agent is `none`.",
    });
  const toolChoice = merged.toolChoice === "none" ? merged.toolChoice : (chosen ?? merged.toolChoice);
  if (typeof toolChoice === "object" && tools.get(toolChoice.tool) === undefined) {
    throw new KitError({
      code: "invalid_request",
      message: `The choice of tools names the tool "${toolChoice.tool}", which the agent does not have.`,
      hint: `The tools are: ${tools.names().join(", ")}.`,
    });
  }
  return {
    modelSettings: toolChoice === undefined ? merged : { ...merged, toolChoice },
    forcedTools: forcesOwn && chosen === "required" ? callerTools.map(({ name }) => name) : undefined,
  };
}

const noChoice: TurnSettings = { modelSettings: undefined, forcedTools: undefined };

/** The settings of a turn that needs none. */
export const noSettings: CallSettings = {};

export type CallSettings = Omit<LanguageModelV4CallOptions, "prompt" | "tools">;

/** The settings of one model call, after so many turns: those of the profile and the prompt, under what the turn itself needs. */
export function callSettingsOf(
  {
    modelSettings,
    settings,
    tools,
  }: {
    readonly modelSettings?: ModelSettings | undefined;
    readonly settings: CallSettings;
    readonly tools: readonly { readonly name: string }[];
  },
  turns: number,
): CallSettings {
  if (modelSettings === undefined) return settings;
  const { toolChoice, stopSequences, providerOptions, ...others } = modelSettings;
  // A forced tool choice holds for the first answer: otherwise the model could never end.
  const isForced = toolChoice === "required" || typeof toolChoice === "object";
  // A backend can offer a model a part of the tools.
  const isOffered =
    typeof toolChoice === "object" ? tools.some(({ name }) => name === toolChoice.tool) : tools.length > 0;
  const chooses = toolChoice !== undefined && isOffered && !(isForced && turns > 0);
  const choice =
    typeof toolChoice === "object"
      ? ({ type: "tool", toolName: toolChoice.tool } as const)
      : { type: toolChoice ?? "auto" };
  return {
    ...defined(others),
    ...(stopSequences === undefined ? {} : { stopSequences: [...stopSequences] }),
    ...(chooses ? { toolChoice: choice } : {}),
    ...settings,
    ...(providerOptions === undefined
      ? {}
      : { providerOptions: mergeOptions(providerOptions, settings.providerOptions) }),
  };
}

function mergeOptions(
  base: SharedV4ProviderOptions,
  over: SharedV4ProviderOptions | undefined = {},
): SharedV4ProviderOptions {
  const merged = { ...base };
  for (const [provider, options] of Object.entries(over))
    merged[provider] = { ...merged[provider], ...options };
  return merged;
}

/** The settings of a call as the event `turn_request` has them; undefined if none is set. */
export function reportedSettings(settings: CallSettings): EventCallSettings | undefined {
  const { maxOutputTokens, stopSequences, reasoning, responseFormat } = settings;
  const reported: EventCallSettings = defined({
    temperature: settings.temperature,
    top_p: settings.topP,
    top_k: settings.topK,
    frequency_penalty: settings.frequencyPenalty,
    presence_penalty: settings.presencePenalty,
    seed: settings.seed,
    max_output_tokens: maxOutputTokens,
    stop_sequences: stopSequences,
    reasoning,
    output: responseFormat?.type === "json" ? ("json" as const) : undefined,
  });
  return Object.keys(reported).length === 0 ? undefined : reported;
}

const defaultCompaction: CompactionSettings = {
  enabled: true,
  contextWindowTokens: 128_000,
  reserveTokens: 16_384,
  keepRecentTokens: 20_000,
};

/** The settings of a profile over the defaults. */
export function compactionOf({ compaction }: Pick<AgentProfile, "compaction">): CompactionSettings {
  if (compaction === undefined) return defaultCompaction;
  let settings = compactions.get(compaction);
  if (settings === undefined) {
    settings = { ...defaultCompaction, ...defined(compaction) };
    compactions.set(compaction, settings);
  }
  return settings;
}

/** The settings of each profile, made once: every operation asks for them. */
const compactions = new WeakMap<NonNullable<AgentProfile["compaction"]>, CompactionSettings>();
