import type { AgentProfile } from "../../agents/agent-profile.ts";
import { createSecretMask } from "../../agents/secrets.ts";
import type { App } from "../../app/agents/app.ts";
import { knownSecrets } from "../../app/agents/known-secrets.ts";
import { openApp } from "../../app/agents/open-app.ts";
import { toProfile } from "../../app/config/agent-config.ts";
import type { LoadedConfig } from "../../app/config/load-config.ts";
import type { Project } from "../../project/project.ts";
import { local } from "../../sandboxes/local/local-sandbox.ts";
import type { CommandContext } from "../command.ts";
import { safeLine } from "../text/safe-text.ts";
import { createTerminalApprovals } from "./terminal-approvals.ts";

export interface TerminalAppOptions {
  readonly project: Project;
  readonly loaded: LoadedConfig;
  readonly context: CommandContext;
  readonly options: {
    readonly model?: string | undefined;
    readonly allowWrite?: boolean | undefined;
    readonly allowShell?: boolean | undefined;
  };
}

/** The project's agents at a terminal: they work in the project itself, with the rights of the line. */
export async function openTerminalApp({
  project,
  loaded,
  context,
  options,
}: TerminalAppOptions): Promise<{ readonly app: App; readonly mask: (text: string) => string }> {
  const { config, environment } = loaded;
  const { output, json } = context;
  const mask = createSecretMask(knownSecrets(environment, config.providers, config.store));
  const defaults: AgentProfile = {
    ...toProfile(config.agent, config.compaction),
    ...(options.allowWrite === true ? { allowWrite: true } : {}),
    ...(options.allowShell === true ? { allowShell: true } : {}),
  };
  // Whoever pipes something in, or reads JSON, cannot be asked: what needs approval is denied then.
  const asks = process.stdin.isTTY && process.stderr.isTTY && !json;
  const app = await openApp({
    project,
    env: environment,
    defaults,
    // Who asks for a model on the line means it, whatever the agent's file says.
    ...(options.model === undefined ? {} : { overrides: { model: options.model } }),
    sandbox: local({ root: project.root }),
    ...(asks ? { approvals: createTerminalApprovals({ input: process.stdin, output, mask }) } : {}),
    onListenerError: (error) => {
      const reason = safeLine(error instanceof Error ? error.message : String(error));
      output.note(output.noteStyle("yellow", `warning: a listener of events failed: ${mask(reason)}`));
    },
    ...(config.mcp === undefined ? {} : { mcp: config.mcp }),
    ...(config.providers === undefined ? {} : { providers: config.providers }),
    ...(config.store === undefined ? {} : { store: config.store }),
  });
  return { app, mask };
}
