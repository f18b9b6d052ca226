import { relative, resolve } from "node:path";
import { type LoadedConfig, loadConfig } from "../app/config/load-config.ts";
import { openProject } from "../project/open-project.ts";
import type { Project, RefreshOptions } from "../project/project.ts";
import type { CommandContext, ExitCode } from "./command.ts";
import { safeLine } from "./text/safe-text.ts";

/** A project that is open and up to date, as a command uses it. */
export interface OpenedProject {
  readonly project: Project;
  readonly loaded: LoadedConfig;
}

export interface WithProjectOptions {
  /** Refuses every write; also on when the configuration says so. */
  readonly readOnly?: boolean;
  /** `--env`, as written. */
  readonly envFile?: string | undefined;
}

/** Opens the project of a command line, up to date with the disk, and closes it whatever happens. */
export async function withProject(
  context: CommandContext,
  use: (opened: OpenedProject) => Promise<ExitCode>,
  options: WithProjectOptions = {},
): Promise<ExitCode> {
  const { root, output } = context;
  const loaded = await loadProjectConfig(context, options);
  const readOnly = options.readOnly ?? loaded.config.server?.read_only ?? false;
  const project = await openProject({ root, config: loaded.config, readOnly, ...toRefreshOptions(context) });
  try {
    output.progress("");
    return await use({ project, loaded });
  } finally {
    await project.close();
  }
}

/** The configuration of the project, with its warnings said on stderr. */
export async function loadProjectConfig(
  { root, cwd, configFile, output }: CommandContext,
  { envFile }: Pick<WithProjectOptions, "envFile"> = {},
): Promise<LoadedConfig> {
  const file = configFile === undefined ? undefined : relative(root, resolve(cwd, configFile));
  const loaded = await loadConfig({
    cwd: root,
    file,
    envFile: envFile === undefined ? undefined : relative(root, resolve(cwd, envFile)),
  });
  for (const warning of loaded.warnings)
    output.note(`${output.noteStyle("yellow", "warning:")} ${safeLine(warning)}`);
  return loaded;
}

/** Work that takes less than this says nothing, in ms. */
const quietMs = 300;

/** Ends with the command, and shows progress on the terminal once the work takes long. */
export function toRefreshOptions({ output, signal }: CommandContext): RefreshOptions {
  const started = Date.now();
  return {
    signal,
    onProgress: ({ done, total, phase }) => {
      if (Date.now() - started < quietMs) return;
      output.progress(`${phase}: ${done.toLocaleString("en")} of ${total.toLocaleString("en")}`);
    },
  };
}
