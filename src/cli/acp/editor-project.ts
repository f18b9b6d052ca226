import { realpathSync, statSync } from "node:fs";
import { homedir } from "node:os";
import { dirname, isAbsolute, sep } from "node:path";
import type { Approvals } from "../../agents/approvals/approvals.ts";
import type { AgentProfile } from "../../agents/define/agent-profile.ts";
import { toProfile } from "../../app/config/agent-config.ts";
import { openProjectService } from "../../app/service/open-project-service.ts";
import type { ProjectService } from "../../app/service/service.ts";
import { trustHint, untrustedCode } from "../../app/trust/trust.ts";
import { withoutGrants } from "../../app/trust/untrusted-config.ts";
import { KitError } from "../../base/kit-error.ts";
import type { KitClient } from "../../client/kit-client.ts";
import { contextWindowOf, modelsWithKeys } from "../../models/create-model-resolver.ts";
import { openProject } from "../../project/open-project.ts";
import { local } from "../../sandboxes/local/local-sandbox.ts";
import type { CommandContext } from "../command.ts";
import { useProjectPackages } from "../project-packages.ts";
import { describeError } from "../report-error.ts";
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
  readonly service: ProjectService;
  /** Models that a person can choose for a session. */
  readonly models: readonly string[];
  /** The context window of a model in tokens, if kit knows it. */
  windowOf(model: string): number | undefined;
  /**
   * Finds the server that holds the folder, or opens the project's own engine in this process, whose runs survive it. Throws `conflict`
   * if another process has it open.
   */
  openRuns(model: string | undefined): Promise<EditorRuns>;
}

/** The durable runs of a project, as a server serves them. */
export interface EditorRuns {
  readonly client: KitClient;
  /** Whether another process does the work. */
  readonly isServed: boolean;
  close(): Promise<void>;
}

/**
 * Opens a folder of `realFolder`. Calls that the configuration does not permit wait for the person. Throws
 * `forbidden` for code or addresses that the person has not trusted.
 */
export async function openEditorProject(
  root: string,
  { context, agent, models }: EditorAgentOptions,
  approvals: Approvals,
): Promise<EditorProject> {
  const note = (text: string): void => context.output.note(`kit acp: ${text}`);
  const found = await readProjectConfig({ ...context, root, cwd: root }, { dotEnv: true });
  for (const warning of found.warnings) note(warning);
  const unrun = unrunCode(found, root);
  if (unrun !== undefined && agent !== "default") throw untrustedCode(unrun);
  if (unrun !== undefined) note(describeError(untrustedCode(unrun)));
  const runsCode = found.untrustedCode !== true;
  const { loaded, left } = runsCode ? { loaded: found, left: [] } : withoutGrants(found, root);
  if (left.length > 0)
    note(`${safeLine(left.join(", "))}: not used, because you have not trusted this folder. ${trustHint}`);
  const { config, environment } = loaded;
  if (runsCode) useProjectPackages(root);
  const project = await openProject({ root, config, background: true, signal: context.signal });
  const parts = {
    ...{ project, loaded, isTerminal: true, housekeeping: false, endsIdle: false, code: runsCode },
    onListenerError: (error: unknown) => note(describeError(error)),
  };
  const overridesOf = (model: string | undefined) => (model === undefined ? {} : { model });
  const service = await openProjectService({
    ...parts,
    closesProject: true,
    // Several editors, and a server, can have the folder open: they share the session store only.
    engine: "memory",
    keepsWork: false,
    defaults: askingProfile(toProfile(config.agent)),
    overrides: overridesOf(models[0]),
    sandbox: local({ root }),
    approvals,
  });
  const known = modelsWithKeys({ env: environment, providers: config.providers });
  const all = [...models, ...[config.agent?.model ?? []].flat(), ...known, "offline/guide"];
  return {
    service,
    models: [...new Set(all)],
    windowOf: (model) => contextWindowOf(model, config.providers),
    async openRuns(model) {
      const { clientLocator } = await import("../client/open-client.ts");
      const served = await (await clientLocator({ ...context, root, cwd: root }, undefined))();
      if (served !== undefined) return { client: served, isServed: true, close: async () => undefined };
      // The engine also does other work that waits in it, without a person who is asked: it has no rights but the configured ones.
      const runs = await openProjectService({
        ...parts,
        overrides: overridesOf(model ?? models[0]),
      });
      const [{ createServer }, { KitClient }] = await Promise.all([
        import("../../server/create-server.ts"),
        import("../../client/kit-client.ts"),
      ]);
      const server = createServer({ project, service: runs, console: false });
      const fetch: typeof globalThis.fetch = async (input, init) =>
        await server.fetch(new Request(input, init));
      return {
        client: new KitClient({ baseUrl: "http://localhost", fetch, retry: { attempts: 1 } }),
        isServed: false,
        close: () => runs.close({ timeoutMs: 0 }),
      };
    },
  };
}

/** Returns the real path of a folder that an editor has open. Throws `invalid_request` for one that is no project. */
export function realFolder(folder: string): string {
  const root = isAbsolute(folder) && isFolder(folder) ? realpathSync(folder) : undefined;
  const home = isFolder(homedir()) ? realpathSync(homedir()) : homedir();
  // Reading a whole disk would never end, and its agents could change all of it.
  if (root !== undefined && root !== dirname(root) && !`${home}${sep}`.startsWith(`${root}${sep}`))
    return root;
  const why = isAbsolute(folder) ? "does not exist" : "must be an absolute path";
  throw new KitError({
    code: "invalid_request",
    message: `The folder of a session ${root === undefined ? why : "contains a whole home folder or disk"}.`,
    hint: "Open the folder of a project in the editor.",
  });
}

function isFolder(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false })?.isDirectory() === true;
}

/** Returns the rights of agents in an editor: calls that the configuration does not permit wait for the person. */
function askingProfile({ allowWrite, allowShell, approvals }: AgentProfile): AgentProfile {
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
