import * as z from "zod/mini";
import { KitError } from "../../base/kit-error.ts";
import { isRecord } from "../../base/record.ts";
import type { ApplicationCalls } from "../../protocol/run-calls.ts";
import { type AgentProfile, profileSchema, type Role } from "./agent-profile.ts";
import { mergeApprovals } from "./approval-rules.ts";

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
  /** Only for the type checker: no value has this field. */
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
      // A copy would read the signal, which most functions do not use.
      source(
        isWhole(context)
          ? context
          : { signal: new AbortController().signal, ...noApplicationCalls, ...context },
      ),
  };
}

function isWhole(context: InstanceContext & Partial<AgentContext>): context is AgentContext {
  return "signal" in context && "dispatch" in context && "startRun" in context && "getRun" in context;
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

/**
 * Returns the profile unchanged; editors check its fields.
 *
 * @example
 * ```ts
 * import { createAgent, defineAgentProfile } from "kit";
 *
 * const careful = defineAgentProfile({ allowWrite: false, budget: { maxTurns: 20 } });
 * export default createAgent({ ...careful, name: "reader" });
 * ```
 */
export function defineAgentProfile<Output = unknown>(profile: AgentProfile<Output>): AgentProfile<Output> {
  return profile;
}

/**
 * Merges two profiles: fields of `over` replace those of `base`, lists are joined (`base` first), settings objects
 * are merged field by field. A list inside a settings object is replaced. Rules of approvals add up.
 *
 * @example
 * ```ts
 * import { mergeProfiles } from "kit";
 *
 * const { allowedCommands } = mergeProfiles({ allowedCommands: ["git"] }, { allowedCommands: ["npm test"] });
 * console.log(allowedCommands); // ["git", "npm test"]
 * ```
 */
export function mergeProfiles<Base = unknown, Over = unknown>(
  base: AgentProfile<Base>,
  over: AgentProfile<Over>,
): AgentProfile<MergedOutput<Base, Over>> {
  const merged = mergeFields(profileSchema.shape, { base, over, joinsLists: true });
  if (base.hooks !== undefined && over.hooks !== undefined) merged.hooks = [base.hooks, over.hooks].flat();
  if (base.approvals !== undefined && over.approvals !== undefined)
    merged.approvals = mergeApprovals(base.approvals, over.approvals);
  return merged as AgentProfile<MergedOutput<Base, Over>>;
}

/** The type of answers after a merge: that of `over`, if it has an output. */
type MergedOutput<Base, Over> = unknown extends Over ? Base : Over;

/** The fields of both: those of `over` win, except that settings objects are merged, and lists joined where it is asked for. */
function mergeFields(
  shape: z.core.$ZodShape,
  {
    base,
    over,
    joinsLists = false,
  }: { readonly base: object; readonly over: object; readonly joinsLists?: boolean },
): Record<string, unknown> {
  const merged: Record<string, unknown> = { ...base };
  for (const [field, value] of Object.entries(over)) {
    if (value === undefined) continue;
    const before = merged[field];
    const schema = schemaOf(shape[field], value);
    if (schema instanceof z.core.$ZodObject && isRecord(before) && isRecord(value))
      merged[field] = mergeFields(schema._zod.def.shape, { base: before, over: value });
    else if (joinsLists && schema instanceof z.core.$ZodArray && Array.isArray(before))
      merged[field] = before.concat(value);
    else merged[field] = value;
  }
  return merged;
}

/** The schema that a value of a field has: of a choice, the one of an object where the value is an object. */
function schemaOf(field: z.core.$ZodType | undefined, value: unknown): z.core.$ZodType | undefined {
  if (field instanceof z.core.$ZodOptional) return schemaOf(field._zod.def.innerType, value);
  if (field instanceof z.core.$ZodUnion && isRecord(value))
    return field._zod.def.options.find((option) => option instanceof z.core.$ZodObject);
  return field;
}

/**
 * Extracts the part of a profile that a role can hold. Throws `TypeError` for a profile without a name.
 *
 * @example
 * ```ts
 * import { profileToRole } from "kit";
 *
 * const role = profileToRole({ name: "reviewer", instructions: "You review pull requests." });
 * console.log(role.description); // ""
 * ```
 */
export function profileToRole(profile: AgentProfile): Role {
  if (profile.name === undefined) throw new TypeError("A profile needs a `name` to become a role.");
  return {
    name: profile.name,
    description: profile.description ?? "",
    instructions: profile.instructions ?? "",
    model: profile.model,
    thinkingLevel: profile.thinkingLevel,
  };
}

/**
 * Turns a role into a profile with its name, instructions and model.
 *
 * @example
 * ```ts
 * import { createAgent, roleToProfile } from "kit";
 *
 * const role = { name: "reviewer", description: "Reviews changes.", instructions: "You review pull requests." };
 * export default createAgent(roleToProfile(role));
 * ```
 */
export function roleToProfile(role: Role): AgentProfile {
  return { ...role };
}
