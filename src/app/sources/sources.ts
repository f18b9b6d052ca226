import { realpathSync } from "node:fs";
import { stat } from "node:fs/promises";
import { join } from "node:path";
import type { AgentProfile } from "../../agents/define/agent-profile.ts";
import { type AgentDefinition, mergeProfiles } from "../../agents/define/create-agent.ts";
import { toSentence } from "../../base/error-text.ts";
import { KitError } from "../../base/kit-error.ts";
import { isReservedName } from "../../protocol/built-in-workflows.ts";
import type { Dispatch, WorkflowReference } from "../../protocol/run-calls.ts";
import { AgentWrites } from "./agent-writes.ts";
import {
  discoverSources,
  type LoadedAgent,
  type LoadedSource,
  type LoadedWebhook,
  type LoadedWorkflow,
  loadSource,
  type SourceFile,
  type SourceModules,
  type SourceProblem,
} from "./discover-sources.ts";
import { followSources, type SourceHooks } from "./follow-sources.ts";
import { findMarkdown, loadRoles } from "./load-roles.ts";
import { findSkillFiles, loadSkills } from "./load-skills.ts";

/** The name of the default agent, which needs no file: it only has the project's tools. */
export const defaultAgentName = "default";

/** The definition of the agent of that name. */
export const defaultAgent: AgentDefinition = { kind: "kit.agent", describe: async () => ({}) };

export interface OpenSourcesOptions {
  /** False for a program that defines its agent itself: no code of the project runs. Default true. */
  readonly code?: boolean | undefined;
  /** Whether to record for the next process which files models have written. Default true. */
  readonly keepsWrites?: boolean | undefined;
  /** Laid under every agent's own profile: the `agent` table of the configuration. */
  readonly defaults?: AgentProfile | undefined;
  /** The code of the project; default: the files in its folder. */
  readonly modules?: SourceModules | undefined;
}

/** The definitions in the files of a project, as of the last read. */
export class Sources {
  /** The project's folder; a real path. */
  readonly root: string;
  /** Records the files that models write, so that the process does not run them. */
  readonly guard: AgentWrites;
  readonly #hooks: SourceHooks;
  readonly #code: boolean;
  /** Also holds replaced definitions: runs and programs continue with the code with which they started. */
  readonly #names = new WeakMap<object, string>();
  readonly #defaults: AgentProfile | undefined;
  readonly #modules: SourceModules | undefined;
  /** A new object after each `reload`. */
  loaded: ProjectSources = noSources;
  #byName: ReadonlyMap<string, LoadedAgent> = new Map();
  #version = "";

  private constructor(root: string, { code, keepsWrites, defaults, modules }: OpenSourcesOptions) {
    this.#defaults = defaults;
    this.#modules = modules;
    this.root = realpathSync(root);
    this.#code = code !== false;
    this.guard = new AgentWrites(this.root, { stored: keepsWrites !== false });
    this.#hooks =
      modules === undefined
        ? followSources(this.root, (file, requested) => this.guard.check(file, requested))
        : noHooks;
  }

  /** Reads the files. Broken files are in `loaded.problems`; imports of `kit` resolve until `close`. */
  static async open(root: string, options: OpenSourcesOptions = {}): Promise<Sources> {
    const sources = new Sources(root, options);
    try {
      await sources.#load();
      return sources;
    } catch (error) {
      sources.#hooks.deregister();
      throw error;
    }
  }

  /** `App.agents`. */
  readonly agents = (): readonly LoadedAgent[] => this.loaded.agents;

  agent(name: string): LoadedAgent | undefined {
    return this.#byName.get(name);
  }

  /** The definition of an agent, also of the default one. Throws `agent_not_found`. */
  definition(name: string): AgentDefinition {
    this.checkAgent(name);
    return this.agent(name)?.definition ?? defaultAgent;
  }

  /** The file that exports the definition. */
  fileOf(definition: AgentDefinition): LoadedAgent | undefined {
    return this.loaded.agents.find((agent) => agent.definition === definition);
  }

  /** Throws `agent_not_found` for a name that no agent has; the hint says why a broken file cannot be used. */
  checkAgent(name: string): void {
    if (!this.#byName.has(name) && name !== defaultAgentName) throw this.unknown("agent", name);
  }

  /** Returns the name under which an agent gets inputs. Throws `agent_not_found`, also for a definition that no file exports. */
  agentName(agent: Parameters<Dispatch>[0]): string {
    const name =
      typeof agent === "string"
        ? agent
        : (this.fileOf(agent as AgentDefinition)?.name ?? this.#names.get(agent));
    if (name !== undefined) {
      this.checkAgent(name);
      return name;
    }
    throw new KitError({
      code: "agent_not_found",
      message: "Only an agent that a file exports can get inputs.",
      hint: "Export it by default from a file in src/agents.",
    });
  }

  /** Returns the name of a workflow's file. Throws `workflow_not_found`, also for a definition that no file exports. */
  workflowName(workflow: string | WorkflowReference<never>): string {
    const name = typeof workflow === "string" ? workflow : this.#names.get(workflow);
    if (name !== undefined) return this.workflow(name).name;
    throw new KitError({
      code: "workflow_not_found",
      message: "Only a workflow that a file exports can be started.",
      hint: "Export it by default from a file in src/workflows: export default defineWorkflow({ … }).",
    });
  }

  /** Throws `workflow_not_found`; the hint says why a broken file cannot be used. */
  workflow(name: string): LoadedWorkflow {
    const workflow = this.loaded.workflows.find((item) => item.name === name);
    if (workflow === undefined) throw this.unknown("workflow", name);
    return workflow;
  }

  /** Creates the error for a name without a usable file. */
  unknown(kind: "agent" | "workflow", name: string): KitError {
    const { agents, workflows, problems } = this.loaded;
    const broken = problems.find(({ source }) => source?.kind === kind && source.name === name);
    const names = (kind === "agent" ? agents : workflows).map((item) => item.name).join(", ");
    const isReserved = kind === "workflow" && isReservedName(name);
    return new KitError({
      code: kind === "agent" ? "agent_not_found" : "workflow_not_found",
      message:
        broken === undefined
          ? `There is no ${kind} named "${name}".`
          : `The ${kind} "${name}" cannot be used: its file is broken.`,
      hint:
        broken !== undefined
          ? `${broken.path}: ${broken.message}`
          : isReserved
            ? `Names that begin with "kit." belong to kit's own workflows, and this application has none of this name.`
            : names === ""
              ? `Add one as src/${kind}s/${name}.ts.`
              : `The ${kind}s are: ${names}.`,
    });
  }

  /** Whether a source file, or a file of the project that one imports, has changed since it was read. */
  async hasChanged(): Promise<boolean> {
    return (await this.#versionNow()) !== this.#version;
  }

  /** Reads the files again. */
  async reload(): Promise<void> {
    this.#hooks.renew();
    await this.#load();
  }

  close(): void {
    this.guard.close();
    this.#hooks.deregister();
  }

  async #load(): Promise<void> {
    const loaded = await loadProjectSources(this.root, {
      code: this.#code,
      modules: this.#modules,
      before: this.loaded,
      ...this.guard.loading(),
    });
    const faults = await commandListProblems(loaded.agents, this.#defaults);
    this.loaded = { ...loaded, problems: [...loaded.problems, ...faults] };
    this.#byName = new Map(loaded.agents.map((agent) => [agent.name, agent]));
    for (const { name, definition } of [...this.loaded.agents, ...this.loaded.workflows])
      if (definition !== undefined) this.#names.set(definition, name);
    this.#version = await this.#versionNow();
  }

  async #versionNow(): Promise<string> {
    return `${this.guard.version()} ${await sourceVersion(this.root, this.#hooks.files(), this.#modules)}`;
  }
}

/** Modules of a caller are imported by the caller's code, so there are no imports to follow. */
const noHooks: SourceHooks = { renew: () => undefined, files: () => [], deregister: () => undefined };

/** The definitions in the files of a project. */
export interface ProjectSources {
  readonly agents: readonly LoadedAgent[];
  readonly workflows: readonly LoadedWorkflow[];
  readonly webhooks: readonly LoadedWebhook[];
  readonly skills: NonNullable<AgentProfile["skills"]>;
  readonly roles: NonNullable<AgentProfile["roles"]>;
  /** The files that cannot be used, with the reasons. */
  readonly problems: readonly SourceProblem[];
}

const noSources: ProjectSources = {
  agents: [],
  workflows: [],
  webhooks: [],
  skills: [],
  roles: [],
  problems: [],
};

export interface LoadOptions {
  readonly code: boolean;
  /** As in `OpenSourcesOptions`. */
  readonly modules?: SourceModules | undefined;
  /** The previous definitions: one stays in use if a model has overwritten or removed its file. */
  readonly before?: ProjectSources | undefined;
  /** Throws for a file that must not be loaded. */
  readonly check?: (file: string) => void;
  /** Returns the problem of a file that a model has removed; undefined for another file. */
  readonly removed?: (file: string) => string | undefined;
}

/**
 * Reads agents, workflows, webhooks, skills and roles of a project. With `code: false` it runs no code of the
 * project: a program that defines its agent itself only needs skills and roles.
 */
export async function loadProjectSources(root: string, options: LoadOptions): Promise<ProjectSources> {
  const [discovered, skills, roles] = await Promise.all([
    options.code ? discoverSources(root, options.modules) : { sources: [], problems: [] },
    loadSkills(root, options.check),
    loadRoles(root, options.check),
  ]);
  const results: (LoadedSource | SourceProblem)[] = [];
  const { agents = [], workflows = [], webhooks = [] } = options.before ?? {};
  const before = [...agents, ...workflows, ...webhooks];
  for (const source of discovered.sources) {
    const result = await loadSource(root, source, { modules: options.modules });
    results.push(result);
    if ("message" in result && result.isHeld === true) results.push(...before.filter(isSame(source)));
  }
  for (const source of before) {
    if (discovered.sources.some(isSame(source))) continue;
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
      ...discovered.problems,
      ...skills.problems,
      ...roles.problems,
      ...results.filter((item) => "message" in item),
    ],
  };
}

function isSame({ kind, name }: Pick<SourceFile, "kind" | "name">): (other: SourceFile) => boolean {
  return (other) => other.kind === kind && other.name === name;
}

/**
 * Returns a text that changes if a source file, a skill, a role or one of `files` is changed, added or removed. It calls
 * `stat` once for each file.
 */
async function sourceVersion(
  root: string,
  files: readonly string[],
  modules?: SourceModules,
): Promise<string> {
  const [{ sources, problems }, ...texts] = await Promise.all([
    discoverSources(root, modules),
    findSkillFiles(root),
    findMarkdown(root, ".agents/roles"),
  ]);
  const textFiles = texts.flatMap(({ paths, unusable }) => [...paths, ...unusable.map(({ path }) => path)]);
  const readPaths = [...sources, ...problems].map(({ path }) => path);
  const watched = [...readPaths, ...textFiles].map((path) => join(root, path));
  const all = [...new Set([...watched, ...files])].sort();
  return (await Promise.all(all.map(versionOf))).join("\n");
}

async function versionOf(file: string): Promise<string> {
  const stats = await stat(file, { bigint: true }).catch(() => undefined);
  return `${file} ${stats?.mtimeNs} ${stats?.size} ${stats?.ino}`;
}

/**
 * Returns the entries of command lists that allow nothing, each with its place: in the configuration, or in agents
 * whose profile is the same for every instance. Such an agent works without these entries.
 */
export async function commandListProblems(
  agents: readonly LoadedAgent[],
  defaults: AgentProfile = {},
): Promise<readonly SourceProblem[]> {
  const ownRules = agents.filter(({ definition }) => definition.profile?.allowedCommands !== undefined);
  if (defaults.allowedCommands === undefined && ownRules.length === 0) return [];
  const { faultsOfCommandList } = await import("../../agents/policy/command-list.ts");
  const shared = faultsOfCommandList(defaults);
  const faults = shared.map((fault) => ({ path: "agent.allowed_commands", message: toSentence(fault) }));
  for (const { path, definition } of ownRules) {
    const { profile = {} } = definition;
    const merged = { ...mergeProfiles(defaults, profile), allowedCommands: profile.allowedCommands ?? [] };
    for (const fault of faultsOfCommandList(merged))
      faults.push({ path, message: toSentence(`allowedCommands: ${fault}`) });
  }
  return faults;
}
