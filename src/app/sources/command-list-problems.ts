import type { AgentProfile } from "../../agents/define/agent-profile.ts";
import { mergeProfiles } from "../../agents/define/merge-profiles.ts";
import { faultsOfCommandList } from "../../agents/policy/command-list.ts";
import { toSentence } from "../../base/to-sentence.ts";
import type { SourceProblem } from "./discover-sources.ts";
import type { LoadedAgent } from "./load-source.ts";

/**
 * Entries of command lists that allow nothing, at the place that has them: in the configuration, and in agents
 * whose description is the same for every instance. Such an agent works all the same, without them.
 */
export function commandListProblems(
  agents: readonly LoadedAgent[],
  defaults: AgentProfile = {},
): readonly SourceProblem[] {
  const shared = faultsOfCommandList(defaults);
  const found = shared.map((fault) => ({ path: "agent.allowed_commands", message: toSentence(fault) }));
  const own = agents.flatMap(({ path, definition: { profile } }) => {
    if (profile?.allowedCommands === undefined) return [];
    return faultsOfCommandList({
      ...mergeProfiles(defaults, profile),
      allowedCommands: profile.allowedCommands,
    }).map((fault) => ({ path, message: toSentence(`allowedCommands: ${fault}`) }));
  });
  return [...found, ...own];
}
