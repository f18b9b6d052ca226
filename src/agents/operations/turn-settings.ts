import { KitError } from "../../base/kit-error.ts";
import { defined } from "../../base/record.ts";
import type { Toolkit } from "../agent-runtime.ts";
import type { ModelSettings } from "../define/profile-settings.ts";
import type { PromptOptions } from "./options.ts";

export interface TurnSettings {
  readonly modelSettings: ModelSettings | undefined;
  /** The only tools of the first turn, if the caller forces one of its own. */
  readonly forcedTools: readonly string[] | undefined;
}

/** The settings of turns: those of the call over those of the profile. Throws `invalid_request` for a choice that no turn can fulfil. */
export function turnSettings(
  base: ModelSettings | undefined,
  { modelSettings: over, callerToolChoice, callerTools = [] }: PromptOptions,
  { tools }: Toolkit,
): TurnSettings {
  if ((base ?? over ?? callerToolChoice) === undefined) return noSettings;
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

const noSettings: TurnSettings = { modelSettings: undefined, forcedTools: undefined };
