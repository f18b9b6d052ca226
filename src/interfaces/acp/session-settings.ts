import type { SessionConfigOption, SetSessionConfigOptionRequest } from "@agentclientprotocol/sdk";
import { KitError } from "../../base/kit-error.ts";
import { type ThinkingLevel, thinkingLevels } from "../../protocol/enums.ts";

/** The choices of a person for a session; the agent has its own setting for an absent one. */
export interface SessionSettings {
  readonly model?: string;
  readonly thinkingLevel?: ThinkingLevel;
}

const own = "default";

/** The settings of a session as options of the editor. */
export function toConfigOptions(
  { model, thinkingLevel }: SessionSettings,
  models: readonly string[],
): SessionConfigOption[] {
  const choice = (value: string): { value: string; name: string } => ({ value, name: value });
  const asAgent = { value: own, name: "As the agent says" };
  return [
    {
      type: "select",
      id: "model",
      name: "Model",
      category: "model",
      currentValue: model ?? own,
      options: [asAgent, ...models.map(choice)],
    },
    {
      type: "select",
      id: "thinking",
      name: "Thinking",
      category: "thought_level",
      currentValue: thinkingLevel ?? own,
      options: [asAgent, ...thinkingLevels.map(choice)],
    },
  ];
}

/** Returns the settings after a choice. Throws `invalid_request` for an option or a value that was not offered. */
export function withChoice(
  { model, thinkingLevel }: SessionSettings,
  { configId, value }: Pick<SetSessionConfigOptionRequest, "configId" | "value">,
  models: readonly string[],
): SessionSettings {
  const chosenLevel = thinkingLevels.find((level) => level === value);
  const isOffered =
    value === own || (configId === "model" ? models.some((name) => name === value) : chosenLevel);
  if ((configId !== "model" && configId !== "thinking") || !isOffered)
    throw new KitError({
      code: "invalid_request",
      message: `The session has no option ${JSON.stringify(configId)} with the value ${JSON.stringify(value)}.`,
    });
  const chosen = value === own ? undefined : String(value);
  const next =
    configId === "model" ? { model: chosen, thinkingLevel } : { model, thinkingLevel: chosenLevel };
  return {
    ...(next.model === undefined ? {} : { model: next.model }),
    ...(next.thinkingLevel === undefined ? {} : { thinkingLevel: next.thinkingLevel }),
  };
}
