import type { AgentProfile } from "./agent-profile.ts";

/** What an agent's function is told when an instance of it comes alive. */
export interface AgentContext {
  /** The instance. */
  readonly id: string;
  /** Configuration and secrets. Values never reach a prompt, an event or the sandbox by themselves. */
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly payload: Readonly<Record<string, unknown>>;
}

/** A function that describes the agent for one instance, or the description itself. */
export type AgentSource = AgentProfile | ((context: AgentContext) => AgentProfile | Promise<AgentProfile>);

/** An agent before it is alive: what an agent file exports by default. */
export interface AgentDefinition {
  readonly kind: "kit.agent";
  describe(context: AgentContext): Promise<AgentProfile>;
}

/** Creates an agent. It comes alive with `initAgent`, `ctx.init` or a request to its route. */
export function createAgent(source: AgentSource): AgentDefinition {
  return {
    kind: "kit.agent",
    describe: async (context) => (typeof source === "function" ? source(context) : source),
  };
}

export function isAgentDefinition(value: unknown): value is AgentDefinition {
  return typeof value === "object" && value !== null && "kind" in value && value.kind === "kit.agent";
}
