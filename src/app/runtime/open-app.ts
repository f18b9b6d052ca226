import { resolve } from "node:path";
import type { LanguageModelV4 } from "@ai-sdk/provider";
import { createSecretMask, type SecretMask } from "../../agents/secrets.ts";
import type { McpClient } from "../../mcp/client/create-mcp-client.ts";
import type { McpConfig } from "../../mcp/client/mcp-config.ts";
import { createModelResolver, defaultModelName } from "../../models/create-model-resolver.ts";
import type { ProviderConfigs } from "../../models/provider-config.ts";
import type { Recorder } from "../../models/recording/record-fetch.ts";
import type { Project } from "../../project/project.ts";
import { createPython } from "../../python/create-python.ts";
import type { IsolationOptions, SandboxFactory } from "../../sandboxes/contract.ts";
import type { StoreConfig } from "../config/kit-config.ts";
import { type AppOptions, createApp } from "./create-app.ts";
import type { HostedApp } from "./hosted-app.ts";
import { openStore } from "./open-store.ts";
import { createProjectContext } from "./project-context.ts";
import { createJsonValidator } from "./validate-json.ts";

export interface OpenAppOptions
  extends Pick<
    AppOptions,
    | "defaults"
    | "overrides"
    | "code"
    | "onListenerError"
    | "approvals"
    | "instances"
    | "maxWaiting"
    | "tracesCommands"
  > {
  readonly project: Project;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly mask?: SecretMask;
  readonly providers?: ProviderConfigs;
  /** The `mcp` table of the configuration. */
  readonly mcp?: McpConfig;
  readonly sandbox: SandboxFactory;
  /** How commands of every sandbox are walled in; default: `auto`. */
  readonly isolation?: IsolationOptions;
  /** Default: SQLite in `.kit/sessions.db`. */
  readonly store?: StoreConfig;
  /** Models by their whole name, for tests. */
  readonly models?: Readonly<Record<string, LanguageModelV4>>;
}

/** Opens the agents of a project with kit's own parts: AI SDK models, SQLite, the project's index. */
export async function openApp(options: OpenAppOptions): Promise<HostedApp> {
  const { project, env } = options;
  const models = {
    env,
    ...(options.providers === undefined ? {} : { providers: options.providers }),
    ...(options.models === undefined ? {} : { models: options.models }),
    ...(await openRecorder(options)),
  };
  const mcp = await openMcp(options);
  return createApp({
    root: project.root,
    store: await openStore(options.store ?? "sqlite", project.root),
    sandbox: options.sandbox,
    ...(options.isolation === undefined ? {} : { isolation: options.isolation }),
    resolveModel: createModelResolver(models),
    defaultModel: options.defaults?.model ?? defaultModelName(models),
    env,
    project: createProjectContext(project),
    python: createPython(),
    ...(options.mask === undefined ? {} : { mask: options.mask }),
    ...(mcp === undefined ? {} : { mcp }),
    ...(options.defaults === undefined ? {} : { defaults: options.defaults }),
    ...(options.overrides === undefined ? {} : { overrides: options.overrides }),
    ...(options.code === undefined ? {} : { code: options.code }),
    ...(options.onListenerError === undefined ? {} : { onListenerError: options.onListenerError }),
    ...(options.approvals === undefined ? {} : { approvals: options.approvals }),
    ...(options.instances === undefined ? {} : { instances: options.instances }),
    ...(options.maxWaiting === undefined ? {} : { maxWaiting: options.maxWaiting }),
    ...(options.tracesCommands === undefined ? {} : { tracesCommands: options.tracesCommands }),
  });
}

// Nothing of MCP is loaded where no server is configured.
async function openMcp({ mcp, project, env }: OpenAppOptions): Promise<McpClient | undefined> {
  if (Object.keys(mcp?.servers ?? {}).length === 0) return undefined;
  const { createMcpClient } = await import("../../mcp/client/create-mcp-client.ts");
  return createMcpClient({
    config: mcp ?? {},
    root: project.root,
    env,
    validateJson: createJsonValidator({ isLenient: true }),
  });
}

/** `KIT_RECORD` names a file, from the project's root: provider calls are written to it, without keys. */
async function openRecorder({
  env,
  mask,
  project,
}: OpenAppOptions): Promise<{ readonly fetchFor?: Recorder }> {
  const file = env.KIT_RECORD?.trim() ?? "";
  if (file === "") return {};
  const { createRecorder } = await import("../../models/recording/record-fetch.ts");
  return { fetchFor: createRecorder(resolve(project.root, file), mask ?? createSecretMask([])) };
}
