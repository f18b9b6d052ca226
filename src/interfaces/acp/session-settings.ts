import type { SessionConfigOption, SetSessionConfigOptionRequest } from "@agentclientprotocol/sdk";
import { KitError } from "../../base/kit-error.ts";
import { type ThinkingLevel, thinkingLevels } from "../../protocol/enums.ts";

/** The choices of a person for a session; the agent has its own setting for an absent one. */
export interface SessionSettings {
  readonly model?: string | undefined;
  readonly thinkingLevel?: ThinkingLevel | undefined;
}

const own = "default";

/** Converts the settings of a session to options of the editor. */
export function toConfigOptions(settings: SessionSettings, models: readonly string[]): SessionConfigOption[] {
  const select = (current: string | undefined, values: readonly string[]) => ({
    type: "select" as const,
    currentValue: current ?? own,
    options: [{ value: own, name: "As the agent says" }, ...values.map((value) => ({ value, name: value }))],
  });
  return [
    { id: "model", name: "Model", category: "model", ...select(settings.model, models) },
    {
      ...{ id: "thinking", name: "Thinking", category: "thought_level" },
      ...select(settings.thinkingLevel, thinkingLevels),
    },
  ];
}

/** Returns the settings after a choice. Throws `invalid_request` for an option or a value that was not offered. */
export function withChoice(
  settings: SessionSettings,
  { configId, value }: Pick<SetSessionConfigOptionRequest, "configId" | "value">,
  models: readonly string[],
): SessionSettings {
  const model = models.find((name) => name === value);
  const thinkingLevel = thinkingLevels.find((level) => level === value);
  if (configId === "model" && (model !== undefined || value === own)) return { ...settings, model };
  if (configId === "thinking" && (thinkingLevel !== undefined || value === own))
    return { ...settings, thinkingLevel };
  throw new KitError({
    code: "invalid_request",
    message: `The session has no option ${JSON.stringify(configId)} with the value ${JSON.stringify(value)}.`,
  });
}
