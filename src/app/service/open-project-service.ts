import { join, resolve } from "node:path";
import type { LanguageModelV4 } from "@ai-sdk/provider";
import type { Approvals } from "../../agents/approvals/approvals.ts";
import { createApprovalsBy } from "../../agents/approvals/create-approvals.ts";
import type { EventListener } from "../../agents/events/emitter.ts";
import type { Engine } from "../../engine/contract.ts";
import { createEmbeddedEngine } from "../../engine/embedded/create-embedded-engine.ts";
import { defaultLimits } from "../../engine/embedded/engine-limits.ts";
import { createMachineClock } from "../../engine/embedded/time/machine-clock.ts";
import type { Project } from "../../project/project.ts";
import type { SandboxFactory } from "../../sandboxes/contract.ts";
import { sessionRetentionMs, toEngineLimits } from "../config/engine-config.ts";
import type { LoadedConfig } from "../config/load-config.ts";
import type { HostedApp } from "../runtime/hosted-app.ts";
import { openApp } from "../runtime/open-app.ts";
import { stateFolder } from "../runtime/state-folder.ts";
import { toAppOptions } from "../runtime/to-app-options.ts";
import { createService } from "./create-service.ts";
import { pruneHourly } from "./retention.ts";
import type { Service } from "./service.ts";

const defaultIdleSeconds = 300;

export interface ProjectServiceOptions {
  readonly project: Project;
  readonly loaded: Pick<LoadedConfig, "config" | "environment" | "fileSecrets">;
  /** For agents that name none; default: what the configuration names, else a virtual workspace. */
  readonly sandbox?: SandboxFactory;
  /** Default: in the memory of this process, for as long as it takes. */
  readonly approvals?: Approvals;
  /** Models by their whole name, beside those of the providers. */
  readonly models?: Readonly<Record<string, LanguageModelV4>>;
  /** Hear the events of every agent and workflow, of work too that is taken up at once. */
  readonly observers?: readonly EventListener[];
  /** Told of what fails beside the work. */
  readonly onError?: (error: unknown) => void;
  /** Told in a line what was removed because nobody had touched it for long. */
  readonly onRemoved?: (text: string) => void;
}

export interface ProjectService extends Service {
  /** Drains, then closes the agents; the project is its opener's to close. */
  close(options?: { readonly timeoutMs?: number }): Promise<void>;
}

/** Opens the agents and workflows of a project behind the engine that its configuration names, as `kit start` does. */
export async function openProjectService(options: ProjectServiceOptions): Promise<ProjectService> {
  const app = await openProjectApp(options);
  for (const observer of options.observers ?? []) app.observe(observer);
  let engine: Engine | undefined;
  try {
    engine = openEngine(options);
    const { onError } = options;
    const service = await createService({ app, engine, ...(onError === undefined ? {} : { onError }) });
    const olderThanMs = sessionRetentionMs(options.loaded.config.sessions);
    const { onRemoved = () => undefined } = options;
    const endPruning =
      olderThanMs === undefined
        ? undefined
        : pruneHourly(service.sessions, { olderThanMs, onRemoved, onError: onError ?? (() => undefined) });
    const watch = setInterval(sayProblems(service, onError), problemMs).unref();
    return {
      ...service,
      async close(how) {
        clearInterval(watch);
        await endPruning?.();
        await service.drain(how);
        await app.close();
      },
    };
  } catch (error) {
    await engine?.drain({ timeoutMs: 0 });
    await app.close();
    throw error;
  }
}

/** How often kit looks whether its files are where they were. */
const problemMs = 1_000;

/** Tells of a problem once, when it comes. */
function sayProblems(
  service: Pick<Service, "problem">,
  onError: (error: unknown) => void = () => undefined,
): () => void {
  let told: string | undefined;
  return () => {
    const problem = service.problem();
    if (problem !== undefined && problem.message !== told) onError(problem);
    told = problem?.message;
  };
}

async function openProjectApp({
  project,
  loaded,
  sandbox,
  approvals,
  models,
  onError,
}: ProjectServiceOptions): Promise<HostedApp> {
  const configured = toAppOptions(loaded, project.root);
  const idleSeconds = loaded.config.agent?.idle_seconds ?? defaultIdleSeconds;
  return await openApp({
    ...configured,
    project,
    approvals: approvals ?? createApprovalsBy(createMachineClock()),
    instances: { ...configured.instances, idleMs: idleSeconds * 1_000 },
    ...(sandbox === undefined ? {} : { sandbox }),
    ...(models === undefined ? {} : { models }),
    ...(onError === undefined ? {} : { onListenerError: onError }),
  });
}

function openEngine({ project, loaded }: ProjectServiceOptions): Engine {
  const { agent, engine = {}, sessions } = loaded.config;
  const folder =
    engine.folder === undefined
      ? join(stateFolder(project.root), "engine")
      : resolve(project.root, engine.folder);
  const limits = toEngineLimits(engine, agent?.max_waiting);
  const { retentionMs = defaultLimits.retentionMs } = limits;
  const longestRetentionMs = Math.max(retentionMs, sessionRetentionMs(sessions) ?? 0);
  return createEmbeddedEngine({ folder, limits: { ...limits, longestRetentionMs } });
}
