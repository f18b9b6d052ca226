import type { AgentProfile } from "./agent-profile.ts";
import type { Role } from "./role.ts";

/** The part of a profile that a role can hold. Throws `TypeError` for a profile without a name. */
export function profileToRole(profile: AgentProfile): Role {
  if (profile.name === undefined) throw new TypeError("A profile needs a `name` to become a role.");
  return {
    name: profile.name,
    description: profile.description ?? "",
    instructions: profile.instructions ?? "",
    ...(profile.model === undefined ? {} : { model: profile.model }),
    ...(profile.thinkingLevel === undefined ? {} : { thinkingLevel: profile.thinkingLevel }),
  };
}

export function roleToProfile(role: Role): AgentProfile {
  return { ...role };
}
