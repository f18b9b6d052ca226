import type { AgentProfile } from "../../agents/agent-profile.ts";
import { discoverSources, type SourceProblem } from "./discover-sources.ts";
import { loadRoles } from "./load-roles.ts";
import { loadSkills } from "./load-skills.ts";
import { type LoadedAgent, type LoadedSource, type LoadedWebhook, loadSource } from "./load-source.ts";
import type { LoadedWorkflow } from "./workflow-source.ts";

/** What the files of a project give its agents. */
export interface ProjectSources {
  readonly agents: readonly LoadedAgent[];
  readonly workflows: readonly LoadedWorkflow[];
  readonly webhooks: readonly LoadedWebhook[];
  readonly skills: NonNullable<AgentProfile["skills"]>;
  readonly roles: NonNullable<AgentProfile["roles"]>;
  /** Files that could not be used, and why. */
  readonly problems: readonly SourceProblem[];
}

/**
 * Reads agents, workflows, webhooks, skills and roles of a project. With `code: false` nothing of the project is
 * run: a program that brings its agent along needs skills and roles only.
 */
export async function loadProjectSources(
  root: string,
  options: { readonly code: boolean },
): Promise<ProjectSources> {
  const [found, skills, roles] = await Promise.all([
    options.code ? discoverSources(root) : { sources: [], problems: [] },
    loadSkills(root),
    loadRoles(root),
  ]);
  const results: (LoadedSource | SourceProblem)[] = [];
  for (const source of found.sources) results.push(await loadSource(root, source));
  return {
    agents: results.filter((item) => "kind" in item && item.kind === "agent") as LoadedAgent[],
    workflows: results.filter((item) => "kind" in item && item.kind === "workflow") as LoadedWorkflow[],
    webhooks: results.filter((item) => "kind" in item && item.kind === "webhook") as LoadedWebhook[],
    skills: skills.skills,
    roles: roles.roles,
    problems: [
      ...found.problems,
      ...skills.problems,
      ...roles.problems,
      ...results.filter((item) => "message" in item),
    ],
  };
}
