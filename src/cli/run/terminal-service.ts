import type { AgentProfile } from "../../agents/define/agent-profile.ts";
import type { LoadedConfig } from "../../app/config/load-config.ts";
import type { ProjectService } from "../../app/service/service.ts";
import { defined } from "../../base/record.ts";
import { thrownText } from "../../base/thrown.ts";
import { readLines } from "../../project/features/read-lines.ts";
import type { Project } from "../../project/project.ts";
import type { BackendName } from "../../protocol/enums.ts";
import type { CommandContext } from "../command.ts";
import { canAsk } from "../print/output.ts";
import { createFileReader } from "../print/print-call.ts";
import { usageError } from "../report-error.ts";
import { safeLine } from "../text/safe-text.ts";

export interface TerminalServiceOptions {
  readonly project: Project;
  readonly loaded: LoadedConfig;
  readonly context: CommandContext;
  /** Where accepted work is stored while the command runs: "memory", or a folder; undefined: in the project's engine. */
  readonly engine: string | undefined;
  readonly options: {
    readonly model?: readonly string[] | undefined;
    readonly backend?: BackendName | undefined;
    readonly allowWrite?: boolean | undefined;
    readonly allowShell?: boolean | undefined;
    /** --allow-command implies --allow-shell. */
    readonly allowCommand?: readonly string[] | undefined;
  };
}

/**
 * Opens the project's service for a terminal: agents work in the project itself unless its configuration names a
 * sandbox, with the rights that the command line grants. Throws a usage error for `--allow-command` values that
 * allow no command.
 */
export async function openTerminalService({
  project,
  loaded,
  context,
  engine,
  options,
}: TerminalServiceOptions): Promise<ProjectService> {
  const [{ openProjectService }, { toProfile }, { maskOf }, { local }] = await Promise.all([
    import("../../app/service/open-project-service.ts"),
    import("../../app/config/agent-config.ts"),
    import("../../app/runtime/known-secrets.ts"),
    import("../../sandboxes/local/local-sandbox.ts"),
  ]);
  const configured = toProfile(loaded.config.agent);
  const { input, output, json } = context;
  const { allowCommand = [] } = options;
  if (allowCommand.length > 0) {
    const { faultsOfCommandList } = await import("../../agents/policy/command-list.ts");
    const [fault] = faultsOfCommandList({
      allowedCommands: allowCommand,
      allowWrite: options.allowWrite === true || configured.allowWrite === true,
    });
    if (fault !== undefined)
      throw usageError(`--allow-command: ${fault}.`, "'kit run --help' shows each option.");
  }
  const mask = maskOf(loaded);
  const defaults: AgentProfile = {
    ...(options.allowWrite === true ? { allowWrite: true } : {}),
    ...(options.allowShell === true || allowCommand.length > 0 ? { allowShell: true } : {}),
    ...(allowCommand.length === 0
      ? {}
      : { allowedCommands: [...(configured.allowedCommands ?? []), ...allowCommand] }),
  };
  // With piped input or JSON output, kit cannot ask a person, so calls that need approval are denied.
  const isInteractive = canAsk({ input, output }) && !json;
  return await openProjectService({
    project,
    loaded,
    engine,
    isTerminal: true,
    housekeeping: false,
    endsIdle: false,
    keepsEvents: engine !== "memory",
    defaults,
    // The command line overrides the agent's file.
    overrides: defined({ model: options.model, backend: options.backend }),
    sandbox: loaded.config.agent?.sandbox === undefined ? local({ root: project.root }) : undefined,
    approvals: isInteractive
      ? (await import("../run/terminal-approvals.ts")).createTerminalApprovals({
          input,
          output,
          mask,
          readFile: createFileReader((path) => readLines(project, { path })),
        })
      : "none",
    onListenerError: (error) => {
      const reason = safeLine(thrownText(error));
      output.note(output.noteStyle("yellow", `warning: a listener of events failed: ${mask(reason)}`));
    },
  });
}
