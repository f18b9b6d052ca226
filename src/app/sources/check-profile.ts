import { type AgentProfile, profileSchema } from "../../agents/define/agent-profile.ts";
import { builtInToolNames } from "../../agents/define/profile-settings.ts";
import { faultOfDefinedName, quoteName } from "../../base/names.ts";
import { isRecord } from "../../base/record.ts";
import { faultOf, keyPath } from "../../base/settings.ts";
import { hostPatternForm, parseHostPattern } from "../../sandboxes/host/wall/host-pattern.ts";

// Deeper than tasks can be: such a profile contains itself.
const maxDepth = 64;

/**
 * Describes a fault in the return value of an agent's function; undefined for a profile. A misspelled field is
 * an error: `allowedCommand` would otherwise allow every command.
 */
export function faultOfProfile(value: unknown, path: readonly PropertyKey[] = []): string | undefined {
  if (!isRecord(value)) return "it gave no profile: return an object such as { instructions: … }";
  const fault = faultOf(profileSchema, value, path);
  if (fault !== undefined) return fault;
  const profile: AgentProfile = value;
  const ownFault = faultOfHosts(profile) ?? faultOfNames(profile);
  if (ownFault !== undefined) return `\`${keyPath([...path, ownFault.field])}\` ${ownFault.fault}`;
  if (path.length > 2 * maxDepth) return `\`${keyPath(path)}\` is an agent below itself`;
  for (const [index, subagent] of (profile.subagents ?? []).entries()) {
    const below = faultOfProfile(subagent, [...path, "subagents", index]);
    if (below !== undefined) return below;
  }
  return undefined;
}

interface FieldFault {
  readonly field: string;
  readonly fault: string;
}

function faultOfHosts({ allowNetwork = [] }: AgentProfile): FieldFault | undefined {
  if (allowNetwork.every((host) => parseHostPattern(host) !== undefined)) return undefined;
  return { field: "allowNetwork", fault: `must be a list of hosts: ${hostPatternForm}` };
}

/** Refuses two items with one name: kit would silently drop one of them. */
function faultOfNames(profile: AgentProfile): FieldFault | undefined {
  const { tools = [], commands = [], skills = [], roles = [], subagents = [] } = profile;
  const lists = { tools: [...tools, ...commands], skills, roles, subagents };
  for (const [field, items] of Object.entries(lists)) {
    const seen = new Set<string>();
    const { python = false } = profile;
    for (const { name = "" } of items) {
      if (field === "tools" && (builtInToolNames.has(name) || (name === "run_code" && python !== false)))
        return { field, fault: `has the name "${name}", which is that of a built-in tool` };
      const fault = field === "tools" || field === "subagents" ? undefined : faultOfDefinedName(name);
      if (fault !== undefined) return { field, fault: `has the name ${quoteName(name)}, which ${fault}` };
      if (seen.has(name)) return { field, fault: `has two of the name ${quoteName(name)}` };
      seen.add(name);
    }
  }
  return undefined;
}
