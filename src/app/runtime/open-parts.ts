import { join, resolve } from "node:path";
import type { LanguageModelV4 } from "@ai-sdk/provider";
import type { AgentProfile } from "../../agents/define/agent-profile.ts";
import type { SecretMask } from "../../agents/secrets.ts";
import { defined } from "../../base/record.ts";
import type { McpClient } from "../../mcp/create-mcp-client.ts";
import { createModelResolver, defaultModelName } from "../../models/create-model-resolver.ts";
import type { Recorder } from "../../models/recording/record-fetch.ts";
import type { Project } from "../../project/project.ts";
import { createPython } from "../../python/create-python.ts";
import type { SandboxFactory } from "../../sandboxes/contract.ts";
import type { SessionStore } from "../../stores/contract.ts";
import { toProfile } from "../config/agent-config.ts";
import type { StoreConfig } from "../config/config-schema.ts";
import { persistedBytesOf, sharedEngineOf } from "../config/engine-config.ts";
import type { LoadedConfig } from "../config/load-config.ts";
import { stateFolder } from "../state-folder.ts";
import type { RuntimeParts } from "./agent-factory.ts";
import { maskOf } from "./known-secrets.ts";
import { openSandbox, toIsolation } from "./open-sandbox.ts";
import { createProjectContext } from "./repositories.ts";
import { createJsonValidator } from "./validate-json.ts";

export interface OpenPartsOptions {
  readonly project: Project;
  readonly loaded: Pick<LoadedConfig, "config" | "environment" | "fileSecrets" | "file" | "untrusted">;
  /** The `env` of agents and workflows; default: the environment of `loaded`. */
  readonly env?: Readonly<Record<string, string | undefined>> | undefined;
  /** The store; the caller closes it. Default: the store named in the configuration. */
  readonly store?: SessionStore | undefined;
  /** For agents without a sandbox; default: the sandbox named in the configuration, else a virtual workspace. */
  readonly sandbox?: SandboxFactory | undefined;
  /** Models by their full name, in addition to those of the providers. */
  readonly models?: Readonly<Record<string, LanguageModelV4>> | undefined;
  /** Laid over the `agent` table of the configuration. */
  readonly defaults?: AgentProfile | undefined;
}

/**
 * Opens the parts named in a project's configuration: store, models, MCP servers, Python, sandboxes. Throws `forbidden` if a key would be
 * sent to an address that the person does not trust.
 */
export async function openParts(options: OpenPartsOptions): Promise<RuntimeParts> {
  const { project } = options;
  const { config, fileSecrets, untrusted = [] } = options.loaded;
  if (untrusted.length > 0) throw (await import("../trust/trust.ts")).untrustedError(untrusted);
  const env = options.env ?? options.loaded.environment;
  const { agent = {}, compaction, providers, telemetry = {} } = config;
  const mask = maskOf({ config, environment: env, ...defined({ fileSecrets }) });
  const defaults = { ...toProfile(agent, compaction), ...options.defaults };
  const models = {
    env,
    ...defined({ providers, models: options.models }),
    ...(await openRecorder(project.root, env, mask)),
  };
  const mcp = await openMcp(options, env);
  const python = createPython();
  const context = createProjectContext(project);
  const store = options.store ?? (await openSessions(config, project.root, env));
  return {
    root: project.root,
    store,
    sandbox: options.sandbox ?? (await openSandbox(config, { root: project.root, environment: env })),
    isolation: toIsolation(config.sandbox),
    persistedBytes: persistedBytesOf(config),
    resolveModel: createModelResolver(models),
    defaultModel: defaults.model ?? defaultModelName(models),
    env,
    project: context,
    mcp,
    python,
    mask,
    defaults,
    instances: defined({ maxIdle: agent.max_idle_instances }),
    maxWaiting: agent.max_waiting,
    tracesCommands: telemetry.trace_commands ?? false,
    async close() {
      await mcp?.close();
      await python.close();
      await context.close();
      if (store !== options.store) await store.close();
    },
  };
}

/** Opens the session store. If several machines share an engine's database, that is the default store. */
async function openSessions(
  config: LoadedConfig["config"],
  root: string,
  env: Readonly<Record<string, string | undefined>>,
): Promise<SessionStore> {
  const shared = sharedEngineOf(config, env);
  if (shared === undefined || config.store !== undefined)
    return await openStore(config.store ?? "sqlite", root);
  const { PostgresSessionStore } = await import("../../stores/postgres/postgres-store.ts");
  const { url, schema } = shared;
  return new PostgresSessionStore(schema === undefined ? { url } : { url, schema });
}

/** Opens the store named in the configuration; only its implementation is loaded. */
export async function openStore(config: StoreConfig, root: string): Promise<SessionStore> {
  if (typeof config === "object") return config;
  switch (config) {
    case "memory": {
      const { InMemorySessionStore } = await import("../../stores/memory/memory-store.ts");
      return new InMemorySessionStore();
    }
    case "sqlite": {
      const { SqliteSessionStore } = await import("../../stores/sqlite/sqlite-store.ts");
      return new SqliteSessionStore({ file: join(stateFolder(root), "sessions.db") });
    }
    default: {
      const { PostgresSessionStore } = await import("../../stores/postgres/postgres-store.ts");
      return new PostgresSessionStore({ url: config });
    }
  }
}

// Without a configured server, no code of MCP is loaded.
async function openMcp(
  { project, loaded }: OpenPartsOptions,
  env: Readonly<Record<string, string | undefined>>,
): Promise<McpClient | undefined> {
  const { mcp } = loaded.config;
  if (Object.keys(mcp?.servers ?? {}).length === 0) return undefined;
  const [{ createMcpClient }, { loginsFolder }] = await Promise.all([
    import("../../mcp/create-mcp-client.ts"),
    import("../trust/trust.ts"),
  ]);
  return createMcpClient({
    config: mcp ?? {},
    root: project.root,
    env,
    canAsk: true,
    logins: loginsFolder(project.root, process.env),
    validateJson: createJsonValidator({ isLenient: true }),
  });
}

/** If `KIT_RECORD` names a file, relative to the project's root, provider calls are written to it, without keys. */
async function openRecorder(
  root: string,
  env: Readonly<Record<string, string | undefined>>,
  mask: SecretMask,
): Promise<{ readonly fetchFor?: Recorder }> {
  const file = env.KIT_RECORD?.trim() ?? "";
  if (file === "") return {};
  const { createRecorder } = await import("../../models/recording/record-fetch.ts");
  return { fetchFor: createRecorder(resolve(root, file), mask) };
}
