import { existsSync, statSync } from "node:fs";
import { homedir } from "node:os";
import { dirname, isAbsolute, join, relative, sep } from "node:path";
import type { AnyTool, ToolDefinition } from "../../agents/define/tool.ts";
import type { ProjectContext, Repository, Workplace } from "../../agents/project-context.ts";
import { headCommitOf } from "../../files/git-repository.ts";
import { isOnlyImports } from "../../guidelines/guideline-imports.ts";
import { guidelineAdapterFor } from "../../guidelines/read-guidelines.ts";
import type { ReadTool } from "../../mcp/server/read-tool.ts";
import { guidelinesForTool } from "../../mcp/server/tools/guidelines-for.ts";
import { specImpactTool } from "../../mcp/server/tools/spec-impact.ts";
import { specSearchTool } from "../../mcp/server/tools/spec-search.ts";
import { openProject } from "../../project/open-project.ts";
import type { Project, ProjectRule } from "../../project/project.ts";
import { indexOf } from "../../project/project-index.ts";
import type { AppliedGuideline } from "../../protocol/guideline-query.ts";
import { loadConfig } from "../config/load-config.ts";
import { createInstructionReader, type Glance, glanceAt, holds } from "./read-instructions.ts";

/** The repositories of an application's agents; `close` closes the indexes of all repositories except the application's own. */
export interface OpenProjectContext extends ProjectContext {
  /** The rules of the agents' own repository. */
  rules(): Promise<readonly ProjectRule[]>;
  close(): Promise<void>;
}

/** Gives agents the tools and rules of the project, or of the repository in which they work. */
export function createProjectContext(ownProject: Project, idle?: IdleIndexes): OpenProjectContext {
  const repositories = createRepositories(ownProject, idle);
  const instructions = createInstructionReader();
  const hasWorkspaces = sharedRead(isFolder);
  const toolsAt = (root: string): readonly AnyTool[] => [
    toAgentTool(ownProject, guidelinesForTool, (work) => repositories.use(root, work)),
    toAgentTool(
      ownProject,
      ({ specs }) => specSearchTool(specs),
      (work) => repositories.use(root, work),
    ),
    toAgentTool(ownProject, specImpactTool, (work) => repositories.use(root, work)),
  ];
  const { repository } = indexOf(ownProject);
  const stateOf = sharedRead((root) => {
    if (root === ownProject.root) return repository.current();
    const commit = headCommitOf(root);
    // Nothing watches a repository other than the project's.
    return commit === undefined ? undefined : { commit };
  });
  const tools = toolsAt(ownProject.root);
  const rules = (): Promise<readonly ProjectRule[]> => repositories.use(ownProject.root, rulesIn);

  /** A repository on this machine, for a session whose workspace begins at a folder of it. */
  const at = newest((root: string, cwd: string, workspace: string): Repository => {
    const pathOf = (path: string): string => relative(root, join(workspace, path)).split(sep).join("/");
    const folder = pathOf(cwd);
    return {
      workingFolder: folder,
      tools: root === ownProject.root ? tools : toolsAt(root),
      instructions: () => instructions([{ root, cwd: folder }]),
      async guidelinesFor(path) {
        const relativePath = pathOf(path);
        return relativePath === ".." || relativePath.startsWith("../") || isAbsolute(relativePath)
          ? []
          : await repositories.use(root, (project) => guidelinesOf(project, relativePath));
      },
      sourceAt: (path) => repositories.use(root, async (project) => sourceOf(project, pathOf(path))),
      rules: () => repositories.use(root, rulesIn),
    };
  });

  /** The project itself, for a session with its own workspace, whose files have the same paths as the project's. */
  const ownProjectFor = newest(
    (cwd: string, workspace: string | undefined): Repository => ({
      workingFolder: cwd,
      tools,
      instructions: () =>
        instructions([
          { root: ownProject.root, cwd },
          ...(workspace === undefined ? [] : [{ root: workspace, cwd, isWorkspace: true }]),
        ]),
      guidelinesFor: (path) => repositories.use(ownProject.root, (project) => guidelinesOf(project, path)),
      sourceAt: (path) => repositories.use(ownProject.root, (project) => sourceOf(project, path)),
      rules,
    }),
  );

  return {
    tools,
    rules,
    repositoryAt(workplace) {
      const { cwd, location } = workplace;
      if (location === undefined) return elsewhere(workplace);
      const { shared, above } = location;
      if (shared) return at(repositoryRoot(location.folder, ownProject.root), cwd, location.folder);
      // Most sessions only talk and have no workspace folder.
      if (above !== undefined && !hasWorkspaces(above)) return ownProjectFor(cwd, undefined);
      const { folder } = location;
      if (!isFolder(folder)) return ownProjectFor(cwd, undefined);
      // A session that has created a repository in its own workspace works in that repository.
      return existsSync(join(folder, ".git")) ? at(folder, cwd, folder) : ownProjectFor(cwd, folder);
    },
    stateAt(location) {
      if (location === undefined) return undefined;
      const { shared, above } = location;
      if (shared) return stateOf(repositoryRoot(location.folder, ownProject.root));
      // The folder of a session is computed only where there is one.
      const isOwn = above === undefined || hasWorkspaces(above);
      return stateOf(isOwn && existsSync(join(location.folder, ".git")) ? location.folder : ownProject.root);
    },
    close: repositories.close,
  };

  /** A workspace that only its sandbox can read has instructions, but no index. */
  function elsewhere({ cwd, sandbox }: Workplace): Repository {
    return {
      workingFolder: cwd,
      tools: undefined,
      instructions: () => instructions([{ read: async (path) => await sandbox?.readFile(path), cwd }]),
      guidelinesFor: async () => [],
      sourceAt: async () => undefined,
      rules: async () => [],
    };
  }
}

/** Creates a repository unless the newest one is for the same place: most sessions of an application work in one. */
function newest<Place extends readonly unknown[]>(create: (...place: Place) => Repository): typeof create {
  let last: { readonly place: Place; readonly repository: Repository } | undefined;
  return (...place) => {
    if (last === undefined || place.some((part, at) => part !== last?.place[at]))
      last = { place, repository: create(...place) };
    return last.repository;
  };
}

/** Shares a read of the file system. Every prompt needs it, usually for the same folder, so the last result is cached. */
function sharedRead<Value>(read: (folder: string) => Value): (folder: string) => Value {
  let last: { readonly folder: string; readonly seen: Glance; readonly value: Value } | undefined;
  return (folder) => {
    const now = performance.now();
    if (last?.folder !== folder || !holds(last.seen, now))
      last = { folder, seen: glanceAt(now), value: read(folder) };
    return last.value;
  };
}

function isFolder(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false })?.isDirectory() ?? false;
}

/**
 * Returns the root of the repository of a folder: the nearest folder above it with `.git`, or the project if
 * it comes first. A folder outside of repositories is its own root; a home folder is not a repository.
 */
function repositoryRoot(folder: string, project: string): string {
  if (folder === project) return project;
  // kit opens the work tree of a task at the project's root in it, which can lie below the top of the repository.
  if (folder.startsWith(join(project, ".kit", "work", sep))) return folder;
  const home = homedir();
  for (let at = folder; at !== home; at = dirname(at)) {
    if (at === project || existsSync(join(at, ".git"))) return at;
    if (at === dirname(at)) break;
  }
  // A folder above the project that is no repository belongs to the project.
  return project.startsWith(`${folder}${sep}`) || folder === sep ? project : folder;
}

async function guidelinesOf(project: Project, path: string): Promise<ReturnType<typeof toShown>> {
  await project.ready(path);
  return toShown(project.guidelines.explain(path).applied, project);
}

async function rulesIn(project: Project): Promise<readonly ProjectRule[]> {
  await project.ready();
  return project.guidelines.rules();
}

function sourceOf({ specs }: Project, file: string): Awaited<ReturnType<Repository["sourceAt"]>> {
  if (specs.query({ path: file, limit: 1 }).specs.some(({ path }) => path === file))
    return { kind: "spec", file };
  return guidelineAdapterFor(file) === undefined ? undefined : { kind: "guideline", file };
}

// Leave out rules that a person chooses by name or a tool by description, which do not apply to every file. Also leave out
// kit's samples, which are not rules of the repository, and guidelines that only import others.
function toShown(applied: readonly AppliedGuideline[], { guidelines }: Project) {
  return applied
    .filter(({ guideline, reason }) => reason !== "manual" && reason !== "auto" && !guideline.is_sample)
    .filter(({ guideline }) => !isOnlyImports(guideline.content))
    .map(({ guideline, line }) => ({ ...guideline, line, rule: guidelines.ruleIdOf(guideline) }));
}

type Use = <Value>(work: (project: Project) => Promise<Value>) => Promise<Value>;

/** Converts a tool of kit's MCP server for agents; it reads the repository that `use` opens. */
function toAgentTool<Input, Output extends object>(
  ownProject: Project,
  toolOf: (project: Project, rulesLeftOut?: ReadonlySet<string>) => ReadTool<Input, Output>,
  use: Use,
): AnyTool {
  // Names and schemas are the same for every repository.
  const { name, description, input } = toolOf(ownProject);
  const definition: ToolDefinition<Input> = {
    name,
    description,
    input: input as ToolDefinition<Input>["input"],
    idempotent: true,
    execute: (toolInput, { signal, rulesLeftOut }) =>
      use(async (project) => {
        const tool = toolOf(project, rulesLeftOut);
        const output = await tool.run(toolInput, signal);
        const shows = tool.shows?.(output) ?? [];
        const content = tool.toText(output);
        return shows.length === 0 ? content : { content, shows };
      }),
  };
  return definition;
}

/** When unused indexes of repositories are closed. */
export interface IdleIndexes {
  /** Milliseconds after the last use; default 60,000. */
  readonly idleMs?: number;
  /** The most unused indexes that stay open, the most recently used ones; default 16. */
  readonly maxIdle?: number;
}

/** The indexes of the repositories in which agents work, one for each root, opened at first use. */
export interface Repositories {
  /** Runs `work` with the index of a repository, after a refresh. */
  use<Value>(root: string, work: (project: Project) => Value | Promise<Value>): Promise<Value>;
  close(): Promise<void>;
}

interface Entry {
  readonly project: Promise<Project>;
  /** The running refresh. */
  looking: Promise<unknown> | undefined;
  refreshAt: number;
  /** The number of running calls of `use`. */
  users: number;
  usedAt: number;
}

/** The most time that the project's own index spends on refreshes, as a share. */
const refreshShare = 0.1;

/** Creates the indexes. The caller closes `own`, which stays open all the time. */
export function createRepositories(ownProject: Project, limits: IdleIndexes = {}): Repositories {
  const { idleMs = 60_000, maxIdle = 16 } = limits;
  // In the order of last use.
  const entries = new Map<string, Entry>();
  const closings = new Set<Promise<void>>();
  let sweeper: NodeJS.Timeout | undefined;

  const open = (root: string): Entry => {
    const entry = toEntry(openElsewhere(root));
    entries.set(root, entry);
    // The next call tries again.
    entry.project.catch(() => entries.delete(root));
    return entry;
  };
  const end = (root: string, { project }: Entry): void => {
    entries.delete(root);
    const closing = project
      .then((opened) => opened.close())
      .catch(() => undefined)
      .finally(() => closings.delete(closing));
    closings.add(closing);
  };
  const sweep = (): void => {
    sweeper = undefined;
    const usedBefore = performance.now() - idleMs;
    const idle = [...entries].filter(([, { users }]) => users === 0);
    const excess = idle.length - maxIdle;
    for (const [index, [root, entry]] of idle.entries()) {
      if (index < excess || entry.usedAt <= usedBefore) end(root, entry);
    }
    if (entries.size > 0) sweeper = setTimeout(sweep, idleMs / 2).unref();
  };
  const ownEntry = toEntry(Promise.resolve(ownProject));

  return {
    async use(root, work) {
      const entry = root === ownProject.root ? ownEntry : (entries.get(root) ?? open(root));
      entry.users += 1;
      try {
        const project = await entry.project;
        await (entry === ownEntry ? refreshWhenDue(entry, project) : refreshEntry(entry, project));
        return await work(project);
      } finally {
        entry.users -= 1;
        entry.usedAt = performance.now();
        if (entries.get(root) === entry) {
          entries.delete(root);
          entries.set(root, entry);
          if (entries.size > maxIdle) sweep();
          else sweeper ??= setTimeout(sweep, idleMs / 2).unref();
        }
      }
    },
    async close() {
      clearTimeout(sweeper);
      for (const [root, entry] of [...entries]) end(root, entry);
      await Promise.all(closings);
    },
  };
}

function toEntry(project: Promise<Project>): Entry {
  return { project, looking: undefined, refreshAt: 0, users: 0, usedAt: performance.now() };
}

/**
 * Refreshes an index. The caller sees all changes made before its call, so a refresh that started earlier is not
 * enough; one that starts later serves all callers that wait by then.
 */
async function refreshEntry(entry: Entry, project: Project): Promise<void> {
  if (entry.looking !== undefined) await entry.looking.catch(() => undefined);
  entry.looking ??= project.refresh().finally(() => {
    entry.looking = undefined;
  });
  await entry.looking;
}

/** Refreshes the project's own index at intervals: a server also watches the files. */
async function refreshWhenDue(entry: Entry, project: Project): Promise<void> {
  // A server answers before its project is indexed; callers wait for the files that they need.
  if (project.indexing() !== undefined) return;
  const began = performance.now();
  if (began < entry.refreshAt) return;
  entry.refreshAt = Number.POSITIVE_INFINITY;
  try {
    await refreshEntry(entry, project);
  } finally {
    const now = performance.now();
    entry.refreshAt = now + (now - began) / refreshShare;
  }
}

/**
 * Opens another repository than the project's own, without writing to it or running its code. Of its
 * configuration it only reads `kit.toml`; the index is in memory.
 */
async function openElsewhere(root: string): Promise<Project> {
  const { config } = await loadConfig({ cwd: root, file: "kit.toml", environment: {} }).catch(() => ({
    config: {},
  }));
  return await openProject({ root, config, indexFile: ":memory:", readOnly: true });
}
