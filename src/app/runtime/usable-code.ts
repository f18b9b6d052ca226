import { KitError } from "../../base/kit-error.ts";
import type { RunContext } from "../../engine/contract.ts";

/** Finds an agent or a workflow for a run. The run is held if its file is missing or broken. */
export function usable<Code>(find: () => Code, { hold }: Pick<RunContext, "hold">): Code {
  try {
    return find();
  } catch (error) {
    const isMissing =
      error instanceof KitError && (error.code === "workflow_not_found" || error.code === "agent_not_found");
    throw isMissing ? hold(error) : error;
  }
}
