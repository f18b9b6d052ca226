import { writeFile } from "node:fs/promises";
import { join, relative, sep } from "node:path";
import type { LoadedConfig } from "../app/config/load-config.ts";
import type { Project } from "../project/project.ts";
import { type Application, createApplication } from "./application.ts";
import type { BuildProblem } from "./bundler.ts";
import type { Target } from "./targets/target.ts";
import { type Difference, writeApplication, writeTargetFiles } from "./write-output.ts";

export interface BuildOptions {
  readonly project: Project;
  readonly loaded: LoadedConfig;
  readonly target: Target;
  /** Absolute: what lines to copy are relative to. */
  readonly cwd: string;
  /** Absolute; default `build/<target>` in the project. */
  readonly out?: string | undefined;
  /** Writes nothing. */
  readonly check: boolean;
  /** Replaces files that users changed, and writes into a folder that has other files. */
  readonly force: boolean;
}

export interface BuildResult {
  readonly target: string;
  /** Absolute: the folder of the output, or the project's root for a target whose files lie there. */
  readonly folder: string;
  /** With any problem, nothing was written. */
  readonly problems: readonly BuildProblem[];
  readonly warnings: readonly string[];
  /** Whether the output contains the application; otherwise the platform builds it. */
  readonly holdsApplication: boolean;
  /** Figures of the application. */
  readonly files: number;
  readonly bytes: number;
  /** A sentence of the target about the size, and the limits of its platform. */
  readonly size: string | undefined;
  /** Packages to install beside the output, by name, at exact versions. */
  readonly dependencies: Readonly<Record<string, string>>;
  /** Names of the variables to set where it runs. */
  readonly variables: readonly string[];
  /** How many files of the application are new or different, and how many were removed. */
  readonly changed: number;
  readonly removed: number;
  /** The target's own files. */
  readonly written: readonly string[];
  readonly differences: readonly Difference[];
  readonly next: readonly string[];
  readonly app: Application;
}

/** The folder in which outputs lie where none is named. */
const outputs = "build";

/** Git ignores the files that kit generates again; users commit those that they edit. */
const ignored =
  "# Written by kit build: it makes these again. Commit the other files here.\n/*/app/\n/node/\n/vercel/.vercel/output/\n";

/**
 * Builds a project for a target. Parts of the project that the target does not support become problems, and then
 * nothing is written.
 */
export async function build(options: BuildOptions): Promise<BuildResult> {
  const { project, loaded, target, check, force } = options;
  const made = await createApplication(project, loaded);
  const refused = [...made.problems, ...target.problems(made)];
  const bundle = refused.length > 0 ? undefined : await target.bundle?.(made);
  const app = bundle === undefined ? made : { ...made, files: bundle.files };
  const isOutput = target.placement === "output";
  const folder = options.out ?? (isOutput ? join(project.root, outputs, target.name) : project.root);
  const problems = [...refused, ...(bundle?.problems ?? [])];
  const result = {
    target: target.name,
    folder,
    problems,
    warnings: [...app.warnings, ...target.warnings(app), ...(bundle?.warnings ?? [])],
    size: bundle?.size,
    holdsApplication: target.application !== undefined,
    files: app.files.size,
    bytes: [...app.files.values()].reduce((sum, { byteLength }) => sum + byteLength, 0),
    // A target that lays out its own files includes the packages in them.
    dependencies: bundle === undefined ? app.dependencies : {},
    variables: ["KIT_API_KEYS", ...new Set([...(target.variables ?? []), ...app.variables])],
    next: target.next(app, toWord(relative(options.cwd, folder).split(sep).join("/") || ".")),
    app,
    changed: 0,
    removed: 0,
  };
  if (problems.length > 0) return { ...result, written: [], differences: [] };
  if (check) return { ...result, ...(await writeTargetFiles(target.files(app), { folder, force, check })) };
  if (target.application !== undefined) {
    const place = join(folder, target.application);
    const { written: changed, removed } = await writeApplication(app, {
      folder: place,
      target: target.name,
      force,
    });
    Object.assign(result, { changed, removed });
  }
  if (isOutput && options.out === undefined)
    await writeFile(join(project.root, outputs, ".gitignore"), ignored, { flag: "wx" }).catch(
      () => undefined,
    );
  return { ...result, ...(await writeTargetFiles(target.files(app), { folder, force, check })) };
}

/** A text as one word of a shell. */
function toWord(text: string): string {
  return /^[\w./:@=,+-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`;
}
