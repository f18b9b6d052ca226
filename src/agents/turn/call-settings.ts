import type { LanguageModelV4CallOptions, SharedV4ProviderOptions } from "@ai-sdk/provider";
import { defined } from "../../base/defined.ts";
import type { ModelSettings } from "../define/model-settings.ts";

type CallSettings = Omit<LanguageModelV4CallOptions, "prompt" | "tools">;

/** The settings of the profile and the call, under what the turn itself needs. */
export function settingsOf({
  modelSettings,
  settings,
  tools,
  spending,
}: {
  readonly modelSettings?: ModelSettings | undefined;
  readonly settings: CallSettings;
  readonly tools: readonly unknown[];
  readonly spending: { readonly turns: number };
}): CallSettings {
  if (modelSettings === undefined) return settings;
  const { toolChoice, stopSequences, providerOptions, ...others } = modelSettings;
  // A forced tool choice holds for the first answer: otherwise the model could never end.
  const isForced = toolChoice === "required" || typeof toolChoice === "object";
  const chooses = toolChoice !== undefined && tools.length > 0 && !(isForced && spending.turns > 0);
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
