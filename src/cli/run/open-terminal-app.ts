import type { AgentProfile } from "../../agents/define/agent-profile.ts";
import type { LoadedConfig } from "../../app/config/load-config.ts";
import type { ProjectService } from "../../app/service/service.ts";
import { defined } from "../../base/defined.ts";
import type { Project } from "../../project/project.ts";
import type { BackendName } from "../../protocol/enums.ts";
import type { CommandContext } from "../command.ts";
import { canAsk } from "../input.ts";
import { usageError } from "../report-error.ts";
import { safeLine } from "../text/safe-text.ts";

export interface TerminalServiceOptions {
  readonly project: Project;
  readonly loaded: LoadedConfig;
  readonly context: CommandContext;
  /** Where accepted work is kept while the command runs: "memory", or a folder. */
  readonly engine: string;
  readonly options: {
    readonly model?: readonly string[] | undefined;
    readonly backend?: BackendName | undefined;
    readonly allowWrite?: boolean | undefined;
    readonly allowShell?: boolean | undefined;
    /** Goes without saying that commands are allowed. */
    readonly allowCommand?: readonly string[] | undefined;
  };
}

/**
 * The project's service at a terminal: agents work in the project itself unless its configuration names a sandbox, with the
 * rights of the line. Throws a usage error for `--allow-command` lines that allow nothing.
 */
export async function openTerminalService({
  project,
  loaded,
  context,
  engine,
  options,
}: TerminalServiceOptions): Promise<ProjectService> {
  const [
    { openProjectService },
    { toProfile },
    { maskOf },
    { local },
    { createTerminalApprovals },
    { faultsOfCommandList },
  ] = await Promise.all([
    import("../../app/service/open-project-service.ts"),
    import("../../app/config/agent-config.ts"),
    import("../../app/runtime/known-secrets.ts"),
    import("../../sandboxes/local/local-sandbox.ts"),
    import("./terminal-approvals.ts"),
    import("../../agents/policy/command-list.ts"),
  ]);
  const configured = toProfile(loaded.config.agent);
  const { input, output, json } = context;
  const { allowCommand = [] } = options;
  const [fault] = faultsOfCommandList({
    allowedCommands: allowCommand,
    allowWrite: options.allowWrite === true || configured.allowWrite === true,
  });
  if (fault !== undefined)
    throw usageError(`--allow-command: ${fault}.`, "'kit run --help' shows each option.");
  const mask = maskOf(loaded);
  const defaults: AgentProfile = {
    ...(options.allowWrite === true ? { allowWrite: true } : {}),
    ...(options.allowShell === true || allowCommand.length > 0 ? { allowShell: true } : {}),
    ...(allowCommand.length === 0
      ? {}
      : { allowedCommands: [...(configured.allowedCommands ?? []), ...allowCommand] }),
  };
  // With input from a pipe, or output as JSON, there is nobody to ask: calls that need approval are denied.
  const asks = canAsk({ input, output }) && !json;
  return await openProjectService({
    project,
    loaded,
    engine,
    housekeeping: false,
    endsIdle: false,
    defaults,
    // The line wins over the agent's file.
    overrides: defined({ model: options.model, backend: options.backend }),
    sandbox: loaded.config.agent?.sandbox === undefined ? local({ root: project.root }) : undefined,
    approvals: asks ? createTerminalApprovals({ input, output, mask }) : "none",
    onListenerError: (error) => {
      const reason = safeLine(error instanceof Error ? error.message : String(error));
      output.note(output.noteStyle("yellow", `warning: a listener of events failed: ${mask(reason)}`));
    },
  });
}
