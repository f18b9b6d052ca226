import type { AgentProfile } from "../../agents/agent-profile.ts";
import type { App } from "../../app/agents/create-app.ts";
import { openApp } from "../../app/agents/open-app.ts";
import { toProfile } from "../../app/config/agent-config.ts";
import type { LoadedConfig } from "../../app/config/load-config.ts";
import type { Project } from "../../project/project.ts";
import { local } from "../../sandboxes/local/local-sandbox.ts";

export interface TerminalAppOptions {
  readonly project: Project;
  readonly loaded: LoadedConfig;
  readonly options: {
    readonly model?: string | undefined;
    readonly allowWrite?: boolean | undefined;
    readonly allowShell?: boolean | undefined;
  };
}

/** The project's agents at a terminal: they work in the project itself, with the rights of the line. */
export function openTerminalApp({ project, loaded, options }: TerminalAppOptions): Promise<App> {
  const { config, environment } = loaded;
  const defaults: AgentProfile = {
    ...toProfile(config.agent, config.compaction),
    ...(options.model === undefined ? {} : { model: options.model }),
    ...(options.allowWrite === true ? { allowWrite: true } : {}),
    ...(options.allowShell === true ? { allowShell: true } : {}),
  };
  return openApp({
    project,
    env: environment,
    defaults,
    sandbox: local({ root: project.root }),
    ...(config.mcp === undefined ? {} : { mcp: config.mcp }),
    ...(config.providers === undefined ? {} : { providers: config.providers }),
  });
}
