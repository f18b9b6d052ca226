import type { AgentProfile } from "../../agents/agent-profile.ts";
import type { LoadedConfig } from "../../app/config/load-config.ts";
import type { HostedApp } from "../../app/runtime/hosted-app.ts";
import type { Project } from "../../project/project.ts";
import type { BackendName } from "../../protocol/enums.ts";
import type { CommandContext } from "../command.ts";
import { canAsk } from "../input.ts";
import { usageError } from "../report-error.ts";
import { safeLine } from "../text/safe-text.ts";

export interface TerminalAppOptions {
  readonly project: Project;
  readonly loaded: LoadedConfig;
  readonly context: CommandContext;
  readonly options: {
    readonly model?: readonly string[] | undefined;
    readonly backend?: BackendName | undefined;
    readonly allowWrite?: boolean | undefined;
    readonly allowShell?: boolean | undefined;
    /** Goes without saying that commands are allowed. */
    readonly allowCommand?: readonly string[] | undefined;
  };
}

/** The project's agents at a terminal: in the project itself unless its configuration names a sandbox, with the rights of the line. */
export async function openTerminalApp({
  project,
  loaded,
  context,
  options,
}: TerminalAppOptions): Promise<{ readonly app: HostedApp; readonly mask: (text: string) => string }> {
  const [{ openApp }, { toAppOptions }, { local }, { createTerminalApprovals }, { faultsOfCommandList }] =
    await Promise.all([
      import("../../app/runtime/open-app.ts"),
      import("../../app/runtime/to-app-options.ts"),
      import("../../sandboxes/local/local-sandbox.ts"),
      import("./terminal-approvals.ts"),
      import("../../agents/policy/command-list.ts"),
    ]);
  const { config } = loaded;
  const configured = toAppOptions(loaded, project.root);
  const { input, output, json } = context;
  const { allowCommand = [] } = options;
  const [fault] = faultsOfCommandList({
    allowedCommands: allowCommand,
    allowWrite: options.allowWrite === true || configured.defaults?.allowWrite === true,
  });
  if (fault !== undefined)
    throw usageError(`--allow-command: ${fault}.`, "'kit run --help' shows each option.");
  const { mask } = configured;
  const defaults: AgentProfile = {
    ...configured.defaults,
    ...(options.allowWrite === true ? { allowWrite: true } : {}),
    ...(options.allowShell === true || allowCommand.length > 0 ? { allowShell: true } : {}),
    ...(allowCommand.length === 0
      ? {}
      : { allowedCommands: [...(configured.defaults?.allowedCommands ?? []), ...allowCommand] }),
  };
  // Whoever pipes something in, or reads JSON, cannot be asked: what needs approval is denied then.
  const asks = canAsk({ input, output }) && !json;
  const app = await openApp({
    ...configured,
    project,
    defaults,
    // The line wins over the agent's file.
    overrides: {
      ...(options.model === undefined ? {} : { model: options.model }),
      ...(options.backend === undefined ? {} : { backend: options.backend }),
    },
    ...(config.agent?.sandbox === undefined ? { sandbox: local({ root: project.root }) } : {}),
    ...(asks ? { approvals: createTerminalApprovals({ input, output, mask }) } : {}),
    onListenerError: (error) => {
      const reason = safeLine(error instanceof Error ? error.message : String(error));
      output.note(output.noteStyle("yellow", `warning: a listener of events failed: ${mask(reason)}`));
    },
  });
  return { app, mask };
}
