import { KitError } from "../../base/kit-error.ts";
import type { DispatchReceipt } from "../../protocol/dispatch.ts";
import type { AgentProfile } from "./agent-profile.ts";
import type { DispatchInput } from "./run-calls.ts";

/** The argument of an agent's function, called when an instance is created. */
export interface AgentContext {
  /** The instance. */
  readonly id: string;
  /** Configuration and secrets. Values never reach a prompt, an event or the sandbox by themselves. */
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly payload: Readonly<Record<string, unknown>>;
  /** For the agent's own tools: enqueues work for an agent without waiting for it. */
  readonly dispatch: Dispatch;
}

/** Enqueues an input for a session of an agent; resolves once the application has accepted it. */
export type Dispatch = (agent: string | AgentDefinition, input: DispatchInput) => Promise<DispatchReceipt>;

export type { DispatchInput };

/** A function that describes the agent for one instance, or the description itself. */
export type AgentSource = AgentProfile | ((context: AgentContext) => AgentProfile | Promise<AgentProfile>);

/** A defined agent, before an instance exists: the default export of an agent file. */
export interface AgentDefinition {
  readonly kind: "kit.agent";
  /** The profile, if it is the same for every instance. */
  readonly profile?: AgentProfile;
  describe(context: Omit<AgentContext, "dispatch"> & Partial<AgentContext>): Promise<AgentProfile>;
}

/**
 * Defines an agent. `initAgent`, `ctx.init` or a request to its route creates an instance.
 *
 * @example
 * ```ts
 * import { createAgent } from "kit";
 *
 * export default createAgent(({ env }) => ({
 *   model: env.REVIEW_MODEL ?? "anthropic/claude-sonnet-4-6",
 *   instructions: "You review pull requests.",
 * }));
 * ```
 */
export function createAgent(source: AgentSource): AgentDefinition {
  if (typeof source !== "function")
    return { kind: "kit.agent", profile: source, describe: async () => source };
  return {
    kind: "kit.agent",
    describe: async (context) => source({ dispatch: refuseDispatch, ...context }),
  };
}

export function isAgentDefinition(value: unknown): value is AgentDefinition {
  return typeof value === "object" && value !== null && "kind" in value && value.kind === "kit.agent";
}

const refuseDispatch: Dispatch = async () => {
  throw new KitError({
    code: "unavailable",
    message: "This agent has no application that could accept the input.",
    hint: "Agents of a project's application have one.",
  });
};
