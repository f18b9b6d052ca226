import { existsSync } from "node:fs";
import { basename, extname, join, relative, resolve } from "node:path";
import type { KitConfig } from "../app/config/config-schema.ts";
import type { LoadedConfig } from "../app/config/load-config.ts";
import type { Project, RefreshOptions } from "../project/project.ts";
import type { CommandContext, ExitCode } from "./command.ts";
import { canAsk, type Output } from "./print/output.ts";
import { count } from "./print/table.ts";
import { useProjectPackages } from "./project-packages.ts";
import { safeLine } from "./text/safe-text.ts";

/** An open, up-to-date project, as commands use it. */
export interface OpenedProject {
  readonly project: Project;
  readonly loaded: LoadedConfig;
}

export interface WithProjectOptions {
  /** Whether every write is refused; default: no write is. */
  readonly isReadOnly?: (config: KitConfig) => boolean;
  /** For servers: open before the index is complete. */
  readonly background?: boolean;
  /**
   * Whether the command runs the code of the project, as its user expects. Default false: its configuration in code is run only if a
   * person trusts the folder.
   */
  readonly runsCode?: boolean;
  /** Whether the command sends keys of the environment, for which a person must trust the addresses of the project. Default false. */
  readonly sendsKeys?: boolean;
  /** Whether kit may ask a person at the terminal for that. Default true. */
  readonly mayAsk?: boolean;
  /** Whether the project's `.env` is read where the command line names no file; reported on stderr. */
  readonly dotEnv?: boolean;
  /** Whether the command itself names the code that was not run. Default false: a note on stderr does. */
  readonly namesUnrunCode?: boolean;
}

/** Opens the project of a command line, up to date with the disk, and closes it whatever happens. */
export async function withProject(
  context: CommandContext,
  use: (opened: OpenedProject) => Promise<ExitCode>,
  options: WithProjectOptions = {},
): Promise<ExitCode> {
  const loaded = await loadProjectConfig(context, options);
  const readOnly = options.isReadOnly?.(loaded.config) ?? false;
  const { background = false } = options;
  return await withLoadedProject(context, { loaded, readOnly, background }, (opened) => {
    warnOfUnsavedIndex(opened.project, context);
    return use(opened);
  });
}

/** The same, once the configuration is known. */
export async function withLoadedProject(
  context: CommandContext,
  how: OpenHow,
  use: (opened: OpenedProject) => Promise<ExitCode>,
): Promise<ExitCode> {
  const project = await openShowingProgress(context, how);
  try {
    return await use({ project, loaded: how.loaded });
  } finally {
    await project.close();
  }
}

interface OpenHow extends Pick<WithProjectOptions, "background"> {
  readonly loaded: LoadedConfig;
  readonly readOnly: boolean;
}

async function openShowingProgress(
  context: CommandContext,
  { loaded, readOnly, background = false }: OpenHow,
): Promise<Project> {
  const { root, output } = context;
  // In a folder such as a home folder, it takes long until a file is found that could be counted.
  const looking = setTimeout(() => output.progress("looking for files …"), quietMs);
  try {
    // Imported here, as in the other openers of the command line: the help of a command does without.
    const { openProject } = await import("../project/open-project.ts");
    const refresh = background ? { background, signal: context.signal } : toRefreshOptions(context);
    return await openProject({ root, config: loaded.config, readOnly, ...refresh });
  } finally {
    clearTimeout(looking);
    output.progress("");
  }
}

function warnOfUnsavedIndex(project: Project, { output }: CommandContext): void {
  const problem = project.indexProblem();
  if (problem === undefined) return;
  output.progress("");
  output.note(
    `${output.noteStyle("dim", "note:")} What kit reads is not kept in .kit: ${safeLine(problem)}.`,
  );
}

type LoadOptions = Pick<
  WithProjectOptions,
  "dotEnv" | "runsCode" | "sendsKeys" | "mayAsk" | "namesUnrunCode"
>;

/**
 * Loads the project's configuration and prints its warnings on stderr. Throws `forbidden` if a key of the environment would be sent
 * to an address that no person trusts.
 */
export async function loadProjectConfig(
  context: CommandContext,
  {
    dotEnv = false,
    runsCode = false,
    sendsKeys = false,
    mayAsk = true,
    namesUnrunCode = false,
  }: LoadOptions = {},
): Promise<LoadedConfig> {
  const { root, output } = context;
  const found = await readProjectConfig(context, { dotEnv, runsCode });
  if (found.skippedFile !== undefined && !namesUnrunCode) noteOfUnrunCode(found, context);
  const trustsCode = runsCode && canAsk(context) && codeOf(found, root) !== undefined;
  const mustConfirm = trustsCode || (sendsKeys && found.untrusted !== undefined);
  const loaded = mustConfirm
    ? await (await import("./confirm-trust.ts")).confirmTrust(found, {
        ...context,
        trustsCode,
        sendsKeys,
        mayAsk,
      })
    : found;
  if (loaded.untrustedCode !== true) useProjectPackages(root);
  // Project code finds these variables in the environment, like all others.
  if (loaded.envFile !== undefined && loaded.untrusted === undefined)
    for (const [name, value] of Object.entries(loaded.environment))
      if (value !== undefined) process.env[name] ??= value;
  if (loaded.envFile !== undefined && dotEnv) output.note(output.noteStyle("dim", readText(loaded.envFile)));
  for (const warning of loaded.warnings) {
    output.note(`${output.noteStyle("yellow", "warning:")} ${safeLine(warning)}`);
  }
  return loaded;
}

/**
 * Reads the configuration of a command line and its environment. With a `version` other than before, a configuration in
 * code runs again.
 */
export async function readProjectConfig(
  { root, cwd, configFile, envFile }: CommandContext,
  {
    dotEnv = false,
    runsCode = false,
    version,
  }: Pick<WithProjectOptions, "dotEnv" | "runsCode"> & { readonly version?: string },
): Promise<LoadedConfig> {
  // Files on the line are relative to where it was written, and messages name them from the root.
  const fromRoot = (file: string | undefined): string | undefined =>
    file === undefined ? undefined : relative(root, resolve(cwd, file));
  const { loadConfig } = await import("../app/config/load-config.ts");
  return await loadConfig({
    cwd: root,
    file: fromRoot(configFile),
    envFile: envFile === false ? undefined : fromRoot(envFile),
    dotEnv: dotEnv && envFile !== false,
    runsCode,
    version,
  });
}

/** Commands whose user knows it: some read the configuration twice. */
const informed = new WeakSet<Output>();

/** Says, once for a command, that the code of the project was not run, if it has some. */
export function noteOfUnrunCode(
  loaded: LoadedConfig,
  { root, output }: Pick<CommandContext, "root" | "output">,
): void {
  const code = unrunCode(loaded, root);
  if (code === undefined || informed.has(output)) return;
  informed.add(output);
  const text = `${code} was not run: you have not trusted the code of this folder. 'kit trust' does, or KIT_TRUST=1.`;
  output.note(output.noteStyle("yellow", text));
}

/** The code of a project that must not run because no person trusts it; undefined if there is none. */
export function unrunCode(loaded: LoadedConfig, root: string): string | undefined {
  return loaded.untrustedCode === true ? codeOf(loaded, root) : undefined;
}

/** A file or a folder of the project with code that kit runs; undefined if there is none. */
function codeOf({ skippedFile, file }: LoadedConfig, root: string): string | undefined {
  if (skippedFile !== undefined) return skippedFile;
  if (file !== undefined && extname(file) !== ".toml") return basename(file);
  const folders = ["src/agents", "src/workflows", "src/webhooks"];
  return folders.find((folder) => existsSync(join(root, folder)));
}

function readText({ name, variables, set }: NonNullable<LoadedConfig["envFile"]>): string {
  const read = `Read ${count(variables - set, "variable")} from ${safeLine(name)}`;
  return set === 0 ? `${read}.` : `${read}; ${set} ${set === 1 ? "was" : "were"} set already.`;
}

/** Work that takes less than this prints nothing, in ms. */
const quietMs = 300;

/** Shows progress on the terminal once the work takes long, until the command ends. */
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
