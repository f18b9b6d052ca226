import { realpathSync, statSync } from "node:fs";
import { homedir } from "node:os";
import { dirname, isAbsolute } from "node:path";
import type { Approvals } from "../../agents/approvals/approvals.ts";
import type { AgentProfile } from "../../agents/define/agent-profile.ts";
import { toProfile } from "../../app/config/agent-config.ts";
import type { LoadedConfig } from "../../app/config/load-config.ts";
import { openProjectService } from "../../app/service/open-project-service.ts";
import type { ProjectService } from "../../app/service/service.ts";
import { untrustedCode } from "../../app/trust/trust.ts";
import { KitError } from "../../base/kit-error.ts";
import { thrownText } from "../../base/thrown.ts";
import { modelsWithKeys } from "../../models/create-model-resolver.ts";
import { knownModel, parseModelName } from "../../models/known-models.ts";
import { openProject } from "../../project/open-project.ts";
import { local } from "../../sandboxes/local/local-sandbox.ts";
import type { CommandContext } from "../command.ts";
import { useProjectPackages } from "../project-packages.ts";
import { safeLine } from "../text/safe-text.ts";
import { readProjectConfig, unrunCode } from "../with-project.ts";

export interface EditorAgentOptions {
  readonly context: CommandContext;
  /** The agent that all sessions talk to. */
  readonly agent: string;
  /** `--model`: the first one is the agent's, and the editor can choose among all. */
  readonly models: readonly string[];
}

/** A folder of the editor, open as a project whose agents work in the folder itself. */
export interface EditorProject {
  /** The folder as the editor names it; agents' paths are relative to it. */
  readonly root: string;
  readonly service: ProjectService;
  /** Models that a person can choose for a session. */
  readonly models: readonly string[];
  /** The context window of a model, in tokens; undefined if it is unknown. */
  windowOf(model: string): number | undefined;
}

/**
 * Opens the folder of a session. Calls that neither the configuration nor the agent allows are offered to the model, and wait for
 * the person's permission. Throws `invalid_request` for a folder that is no project, and `forbidden` for code or addresses that
 * the person has not trusted.
 */
export async function openEditorProject(
  folder: string,
  { context, agent, models }: EditorAgentOptions,
  approvals: Approvals,
): Promise<EditorProject> {
  const root = checkedFolder(folder);
  const { output, signal } = context;
  const loaded = await readProjectConfig({ ...context, root, cwd: root }, { dotEnv: true });
  for (const warning of loaded.warnings) output.note(`warning: ${safeLine(warning)}`);
  const runsCode = loaded.untrustedCode !== true;
  if (runsCode) useProjectPackages(root);
  const project = await openProject({ root, config: loaded.config, background: true, signal });
  const service = await openProjectService({
    project,
    loaded,
    closesProject: true,
    // Several editors, and a server, can have the folder open: the conversation is in the session store, which they share.
    engine: "memory",
    isTerminal: true,
    keepsWork: false,
    housekeeping: false,
    endsIdle: false,
    code: runsCode,
    defaults: askingProfile(toProfile(loaded.config.agent)),
    overrides: models.length === 0 ? {} : { model: models[0] },
    sandbox: local({ root }),
    approvals,
    onListenerError: (error) => output.note(`kit acp: ${safeLine(thrownText(error))}`),
  });
  const unrun = unrunCode(loaded, root);
  if (unrun !== undefined && agent !== "default") {
    await service.close({ timeoutMs: 0 });
    throw untrustedCode(unrun);
  }
  if (unrun !== undefined) output.note(`kit acp: ${untrustedCode(unrun).message} 'kit trust' does.`);
  return {
    root: folder.replace(/\/+$/, ""),
    service,
    models: modelsOf(loaded, models),
    windowOf: (model) => windowIn(loaded, model),
  };
}

/** Returns the folder's real path, because the paths of a link are not those of its files. */
function checkedFolder(folder: string): string {
  const refuse = (why: string): KitError =>
    new KitError({
      code: "invalid_request",
      message: `The folder of a session ${why}.`,
      hint: "Open the folder of a project in the editor.",
    });
  if (!isAbsolute(folder)) throw refuse("must be an absolute path");
  if (!statSync(folder, { throwIfNoEntry: false })?.isDirectory()) throw refuse("does not exist");
  const root = realpathSync(folder);
  // Reading a whole disk would never end, and its agents could change all of it.
  if (root === dirname(root) || root === homedir())
    throw refuse("is no project, but a whole home folder or disk");
  return root;
}

/** Returns the rights of agents in an editor: calls that the configuration does not permit wait for the person. */
function askingProfile(configured: AgentProfile): AgentProfile {
  const { allowWrite, allowShell, approvals } = configured;
  const asked = [
    ...(allowWrite === true ? [] : ["write", "edit", "mkdir", "rm"]),
    ...(allowShell === true ? [] : ["bash"]),
    "mcp__*",
  ];
  const tools = [...new Set([...(approvals?.tools ?? []), ...asked])];
  // The approvals of a configuration carry its allow rules, which can waive these. Without that table, kit writes no rules.
  return {
    allowWrite: allowWrite ?? true,
    allowShell: allowShell ?? true,
    approvals: { ...approvals, tools },
  };
}

/** The models of the command line and the configuration, and one of each provider with a key. */
function modelsOf({ config, environment }: LoadedConfig, given: readonly string[]): readonly string[] {
  const withKeys = modelsWithKeys({ env: environment, providers: config.providers });
  return [...new Set([...given, ...[config.agent?.model ?? []].flat(), ...withKeys, "offline/guide"])];
}

function windowIn({ config }: LoadedConfig, model: string): number | undefined {
  try {
    const name = parseModelName(model);
    const windows = config.providers?.[name.provider]?.context_windows;
    return windows?.[name.model] ?? knownModel(name)?.contextWindowTokens;
  } catch {
    // A model object has a name of its own.
    return undefined;
  }
}
