import { join } from "node:path";
import type { LanguageModelV4 } from "@ai-sdk/provider";
import type { AgentProfile } from "../../agents/agent-profile.ts";
import { createModelResolver, defaultModelName } from "../../models/create-model-resolver.ts";
import type { ProviderConfigs } from "../../models/provider-config.ts";
import type { Project } from "../../project/project.ts";
import type { SandboxFactory } from "../../sandboxes/contract.ts";
import type { SessionStore } from "../../stores/contract.ts";
import { type App, createApp, stateFolder } from "./create-app.ts";
import { createProjectContext } from "./project-context.ts";

export interface OpenAppOptions {
  readonly project: Project;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly providers?: ProviderConfigs;
  /** The `agent` table of the configuration. */
  readonly defaults?: AgentProfile;
  readonly sandbox: SandboxFactory;
  /** Default: SQLite in `.kit/sessions.db`. */
  readonly store?: SessionStore;
  /** Models by their whole name, for tests. */
  readonly models?: Readonly<Record<string, LanguageModelV4>>;
}

/** Opens the agents of a project with kit's own parts: AI SDK models, SQLite, the project's index. */
export async function openApp(options: OpenAppOptions): Promise<App> {
  const { project, env } = options;
  const models = {
    env,
    ...(options.providers === undefined ? {} : { providers: options.providers }),
    ...(options.models === undefined ? {} : { models: options.models }),
  };
  return createApp({
    root: project.root,
    store: options.store ?? (await defaultStore(project.root)),
    sandbox: options.sandbox,
    resolveModel: createModelResolver(models),
    defaultModel: options.defaults?.model ?? defaultModelName(models),
    env,
    project: createProjectContext(project),
    ...(options.defaults === undefined ? {} : { defaults: options.defaults }),
  });
}

async function defaultStore(root: string): Promise<SessionStore> {
  const { SqliteSessionStore } = await import("../../stores/sqlite/sqlite-store.ts");
  return new SqliteSessionStore({ file: join(stateFolder(root), "sessions.db") });
}
