import { defined } from "../../base/defined.ts";
import type { AgentProfile, Role } from "./agent-profile.ts";
import { mergeApprovals } from "./approval-rules.ts";

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

const lists = [
  "tools",
  "commands",
  "skills",
  "roles",
  "subagents",
  "allowedCommands",
  "allowNetwork",
  "allowProtectedPaths",
] as const;

/**
 * Merges two profiles: fields of `over` replace those of `base`, lists are joined (`base` first), settings objects
 * are merged field by field.
 *
 * @example
 * ```ts
 * import { mergeProfiles } from "kit";
 *
 * const { allowedCommands } = mergeProfiles({ allowedCommands: ["git"] }, { allowedCommands: ["npm test"] });
 * console.log(allowedCommands); // ["git", "npm test"]
 * ```
 */
export function mergeProfiles(base: AgentProfile, over: AgentProfile): AgentProfile {
  const merged: Record<string, unknown> = { ...base };
  for (const [field, value] of Object.entries(over)) if (value !== undefined) merged[field] = value;
  for (const field of lists) {
    const joined = [...(base[field] ?? []), ...(over[field] ?? [])];
    if (joined.length > 0) merged[field] = joined;
  }
  for (const field of ["compaction", "budget", "modelSettings"] as const) {
    if (base[field] !== undefined && over[field] !== undefined)
      merged[field] = { ...base[field], ...defined(over[field]) };
  }
  if (base.hooks !== undefined && over.hooks !== undefined) merged.hooks = [base.hooks, over.hooks].flat();
  if (base.approvals !== undefined && over.approvals !== undefined)
    merged.approvals = mergeApprovals(base.approvals, over.approvals);
  return merged as AgentProfile;
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
