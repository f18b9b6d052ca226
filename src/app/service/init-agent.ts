import type { AgentContext, AgentDefinition } from "../../agents/create-agent.ts";
import type { Agent } from "../../agents/harness.ts";
import { type OpenAgentsOptions, openWithoutSources } from "./open-agents.ts";

export interface InitAgentOptions extends OpenAgentsOptions {
  /** The instance; default "default". */
  readonly id?: string;
  /** The agent's name in the key of its sessions; default: the profile's, else "agent". */
  readonly name?: string;
  readonly payload?: AgentContext["payload"];
}

/**
 * Brings an agent to life in this process, under the configuration of the repository at `root`. Close
 * it when it is no longer needed: it keeps the repository's index and the session store open.
 */
export async function initAgent(definition: AgentDefinition, options: InitAgentOptions = {}): Promise<Agent> {
  const { id, name, payload, ...around } = options;
  const app = await openWithoutSources(around);
  try {
    const agent = await app.init(definition, {
      ...(id === undefined ? {} : { id }),
      ...(name === undefined ? {} : { name }),
      ...(payload === undefined ? {} : { payload }),
    });
    return {
      ...agent,
      get busy() {
        return agent.busy;
      },
      async close(how) {
        await agent.close(how);
        await app.close();
      },
    };
  } catch (error) {
    await app.close();
    throw error;
  }
}
