import { join, resolve } from "node:path";
import { type Approvals, createApprovalsBy } from "../../agents/approvals/approvals.ts";
import type { Engine } from "../../engine/contract.ts";
import { createEngineOnDemand, openSharedEngine } from "../../engine/open-engine.ts";
import { createMachineClock } from "../../engine/shared/durable-time.ts";
import { defaultLimits, type EngineLimits } from "../../engine/shared/engine-base.ts";
import { sessionRetentionMs, sharedEngineOf, toEngineLimits } from "../config/engine-config.ts";
import type { LoadedConfig } from "../config/load-config.ts";
import type { RuntimeParts } from "../runtime/agent-factory.ts";
import { type OpenPartsOptions, openParts } from "../runtime/open-parts.ts";
import { stateFolder } from "../state-folder.ts";
import { keepsEvents, type ServiceOptions } from "./compose-parts.ts";
import { createService } from "./create-service.ts";
import type { ProjectService } from "./service.ts";

export type MakeEngine = (limits: Partial<EngineLimits>) => Engine | Promise<Engine>;

export interface ProjectServiceOptions
  extends OpenPartsOptions,
    Pick<
      ServiceOptions,
      | "works"
      | "housekeeping"
      | "keepsWork"
      | "isTerminal"
      | "keepsEvents"
      | "observers"
      | "onError"
      | "onRemoved"
      | "onResolved"
    >,
    Pick<RuntimeParts, "code" | "modules" | "overrides" | "onListenerError"> {
  /**
   * "memory", "configured", a folder relative to the root, an engine, which the service drains, or a function that creates
   * one with the limits of the configuration. Default: as the configuration says, else `.kit/engine`; "memory" with
   * `works: false`.
   */
  readonly engine?: string | Engine | MakeEngine | undefined;
  /** Default: approvals in the memory of this process, without a time limit; "none": calls that need approval are denied. */
  readonly approvals?: Approvals | "none" | undefined;
  /** Whether idle instances leave the memory after a while. Default true. */
  readonly endsIdle?: boolean | undefined;
  /** Whether closing the service closes the project. Default false. */
  readonly closesProject?: boolean | undefined;
}

/** Opens the agents and workflows of an open project behind the engine named in its configuration. */
export async function openProjectService(options: ProjectServiceOptions): Promise<ProjectService> {
  const { project, loaded, closesProject = false } = options;
  const closing = new AsyncDisposableStack();
  if (closesProject) closing.defer(() => project.close());
  try {
    const parts = await openServiceParts(options);
    closing.defer(() => parts.close());
    const engine = await openEngine(options);
    closing.defer(() => engine.drain({ timeoutMs: 0 }));
    return await createService(
      { ...parts, close: () => closing.disposeAsync() },
      {
        ...options,
        engine,
        pruneOlderThanMs: sessionRetentionMs(loaded.config.sessions),
        configFile: loaded.file,
        nodeAddress: loaded.config.engine?.address,
      },
    );
  } catch (error) {
    await closing.disposeAsync();
    throw error;
  }
}

const defaultIdleSeconds = 300;

async function openServiceParts(options: ProjectServiceOptions): Promise<RuntimeParts> {
  const { loaded, code, modules, overrides, approvals, endsIdle = true } = options;
  const parts = await openParts(options);
  const idleSeconds = loaded.config.agent?.idle_seconds ?? defaultIdleSeconds;
  return {
    ...parts,
    code,
    modules,
    keepsWrites: modules === undefined,
    overrides,
    approvals: approvals === "none" ? undefined : (approvals ?? createApprovalsBy(createMachineClock())),
    instances: endsIdle ? { ...parts.instances, idleMs: idleSeconds * 1_000 } : parts.instances,
    onListenerError: options.onListenerError ?? options.onError,
  };
}

async function openEngine({ project, loaded, ...options }: ProjectServiceOptions): Promise<Engine> {
  if (typeof options.engine === "object") return options.engine;
  const { engine = {} } = loaded.config;
  const limits = limitsOf(loaded.config);
  if (typeof options.engine === "function") return await options.engine(limits);
  const choice = options.engine ?? (options.works === false ? "memory" : undefined);
  const load = () => import("../../engine/embedded/create-embedded-engine.ts");
  if (choice === "memory") {
    const create = async () => (await load()).createEmbeddedEngine({ limits });
    return keepsEvents(options) ? await create() : createEngineOnDemand(create);
  }
  const shared =
    choice === undefined || choice === "configured"
      ? sharedEngineOf(loaded.config, options.env ?? loaded.environment)
      : undefined;
  if (shared !== undefined) return await openSharedEngine({ ...shared, limits, project: project.name });
  const explicitFolder = choice === "configured" ? engine.folder : (choice ?? engine.folder);
  const folder =
    explicitFolder === undefined
      ? join(stateFolder(project.root), "engine")
      : resolve(project.root, explicitFolder);
  const { createEmbeddedEngine } = await load();
  const isInFile = options.store === undefined && (loaded.config.store ?? "sqlite") === "sqlite";
  const beside = isInFile ? [join(stateFolder(project.root), "sessions.db")] : [];
  return createEmbeddedEngine({ folder, beside, limits });
}

function limitsOf({ agent, engine = {}, sessions }: LoadedConfig["config"]): Partial<EngineLimits> {
  const limits = toEngineLimits(engine, agent?.max_waiting);
  const { retentionMs = defaultLimits.retentionMs } = limits;
  return { ...limits, longestRetentionMs: Math.max(retentionMs, sessionRetentionMs(sessions) ?? 0) };
}
