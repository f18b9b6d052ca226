import { KitError } from "../../base/kit-error.ts";
import type { DispatchReceipt } from "../../protocol/dispatch.ts";
import type { PromptChoices } from "../../protocol/prompt.ts";
import type { AgentProfile } from "./agent-profile.ts";

/** What an agent's function is told when an instance of it comes alive. */
export interface AgentContext {
  /** The instance. */
  readonly id: string;
  /** Configuration and secrets. Values never reach a prompt, an event or the sandbox by themselves. */
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly payload: Readonly<Record<string, unknown>>;
  /** For the agent's own tools: leaves work to an agent without waiting for it. */
  readonly dispatch: Dispatch;
}

/** Gives an input to a session of an agent; resolves once the application has accepted it. */
export type Dispatch = (agent: string | AgentDefinition, input: DispatchInput) => Promise<DispatchReceipt>;

export interface DispatchInput extends PromptChoices {
  /** The agent's instance. */
  readonly id: string;
  /** Default "default". */
  readonly session?: string;
  /** The message; other JSON is given as its text. */
  readonly input: unknown;
  /** The same key within an instance is the same input: it is worked on once. */
  readonly idempotencyKey?: string;
}

/** A function that describes the agent for one instance, or the description itself. */
export type AgentSource = AgentProfile | ((context: AgentContext) => AgentProfile | Promise<AgentProfile>);

/** An agent before it is alive: what an agent file exports by default. */
export interface AgentDefinition {
  readonly kind: "kit.agent";
  /** The description where it is the same for every instance, so that it can be looked at without one. */
  readonly profile?: AgentProfile;
  describe(context: Omit<AgentContext, "dispatch"> & Partial<AgentContext>): Promise<AgentProfile>;
}

/** Creates an agent. It comes alive with `initAgent`, `ctx.init` or a request to its route. */
export function createAgent(source: AgentSource): AgentDefinition {
  if (typeof source !== "function")
    return { kind: "kit.agent", profile: source, describe: async () => source };
  return {
    kind: "kit.agent",
    describe: async (context) => source({ dispatch: dispatchNowhere, ...context }),
  };
}

export function isAgentDefinition(value: unknown): value is AgentDefinition {
  return typeof value === "object" && value !== null && "kind" in value && value.kind === "kit.agent";
}

const dispatchNowhere: Dispatch = async () => {
  throw new KitError({
    code: "unavailable",
    message: "This agent has no application that could take the input.",
    hint: "An agent that a project's application brings to life has one.",
  });
};
