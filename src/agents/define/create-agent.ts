import { KitError } from "../../base/kit-error.ts";
import type { ApplicationCalls } from "../../protocol/run-calls.ts";
import type { AgentProfile } from "./agent-profile.ts";

/**
 * The argument of an agent's function, called when an instance is created: again after a restart, a reload or a long rest,
 * and wherever kit asks for the agent's settings. So work that the function itself starts needs an `idempotencyKey`; tools
 * have `dispatch` and `startRun` of their own, which repeat nothing, and the session and principal of their call.
 */
export interface AgentContext extends ApplicationCalls {
  /** The instance. */
  readonly id: string;
  /** Configuration and secrets. Values never reach a prompt, an event or the sandbox by themselves. */
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly payload: Readonly<Record<string, unknown>>;
  /** Fires when the instance is closed: close here whatever the function has opened. */
  readonly signal: AbortSignal;
}

/** The instance that an agent's function describes the agent for. */
export type InstanceContext = Pick<AgentContext, "id" | "env" | "payload">;

/** A function that describes the agent for one instance, or the description itself. */
export type AgentSource<Output = unknown> =
  | AgentProfile<Output>
  | ((context: AgentContext) => AgentProfile<Output> | Promise<AgentProfile<Output>>);

/** A defined agent, before an instance exists: the default export of an agent file. */
export interface AgentDefinition<Output = unknown> {
  readonly kind: "kit.agent";
  /** For the type checker alone: never there. */
  readonly "~types"?: { readonly output: Output } | undefined;
  /** The profile, if it is the same for every instance. */
  readonly profile?: AgentProfile;
  /** Without an application around it, as in a test, `dispatch` and `startRun` are refused with `unavailable`. */
  describe(context: InstanceContext & Partial<AgentContext>): Promise<AgentProfile>;
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
export function createAgent<Output = unknown>(source: AgentSource<Output>): AgentDefinition<Output> {
  if (typeof source !== "function")
    return { kind: "kit.agent", profile: source, describe: async () => source };
  return {
    kind: "kit.agent",
    describe: async (context) =>
      source({ signal: new AbortController().signal, ...noApplicationCalls, ...context }),
  };
}

export function isAgentDefinition(value: unknown): value is AgentDefinition {
  return typeof value === "object" && value !== null && "kind" in value && value.kind === "kit.agent";
}

function refuseWork(): never {
  throw new KitError({
    code: "unavailable",
    message: "This agent has no application that could take the work.",
    hint: "An agent that a project's application brings to life has one.",
  });
}

const refuseLater = async (): Promise<never> => refuseWork();

/** The calls of an agent without an application: each throws `unavailable`. */
export const noApplicationCalls: ApplicationCalls = {
  dispatch: refuseLater,
  startRun: refuseLater,
  getRun: refuseWork,
};
