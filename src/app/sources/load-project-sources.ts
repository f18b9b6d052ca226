import { join } from "node:path";
import type { AgentProfile } from "../../agents/agent-profile.ts";
import { discoverSources, type SourceFile, type SourceProblem } from "./discover-sources.ts";
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

export interface LoadOptions {
  readonly code: boolean;
  /** What was read before: it goes on in place of what a model has written over it, or removed. */
  readonly before?: ProjectSources | undefined;
  /** Throws for a file that is not to be loaded. */
  readonly check?: (file: string) => void;
  /** What is to be said of a file that a model has removed; undefined for one that it has not. */
  readonly removed?: (file: string) => string | undefined;
}

/**
 * Reads agents, workflows, webhooks, skills and roles of a project. With `code: false` nothing of the project is
 * run: a program that brings its agent along needs skills and roles only.
 */
export async function loadProjectSources(root: string, options: LoadOptions): Promise<ProjectSources> {
  const [found, skills, roles] = await Promise.all([
    options.code ? discoverSources(root) : { sources: [], problems: [] },
    loadSkills(root, options.check),
    loadRoles(root, options.check),
  ]);
  const results: (LoadedSource | SourceProblem)[] = [];
  const before = [
    ...(options.before?.agents ?? []),
    ...(options.before?.workflows ?? []),
    ...(options.before?.webhooks ?? []),
  ];
  for (const source of found.sources) {
    const result = await loadSource(root, source);
    results.push(result);
    if ("message" in result && result.isHeld === true) results.push(...before.filter(isSame(source)));
  }
  for (const source of before) {
    if (found.sources.some(isSame(source))) continue;
    const message = options.removed?.(join(root, source.path));
    const { kind, name, path } = source;
    if (message !== undefined) results.push(source, { path, message, source: { kind, name }, isHeld: true });
  }
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

function isSame({ kind, name }: Pick<SourceFile, "kind" | "name">): (other: SourceFile) => boolean {
  return (other) => other.kind === kind && other.name === name;
}
