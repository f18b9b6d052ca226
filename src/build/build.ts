import { lstat, mkdir, mkdtemp, readdir, readFile, realpath, rename, rm, writeFile } from "node:fs/promises";
import { basename, dirname, join, relative, sep } from "node:path";
import type { LoadedConfig } from "../app/config/load-config.ts";
import { KitError } from "../base/kit-error.ts";
import type { Project } from "../project/project.ts";
import { type Application, createApplication, manifestName, toManifest } from "./application.ts";
import type { BuildProblem } from "./bundler.ts";
import type { Target, TargetFile } from "./targets/target.ts";

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
  /** Packages to install next to the output, by name, at exact versions. */
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

/** A file that exists with other content. */
export interface Difference {
  readonly path: string;
  readonly before: string;
  readonly after: string;
}

/** The default folder of outputs, below the project. */
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

/**
 * Writes an application into a folder that holds only what runs there (also `.kit`, `node_modules`): new and changed
 * files are replaced atomically, and files of an earlier build that are no longer needed are removed. Throws
 * `conflict`, before anything is written, for a folder with other files, unless `force` is set.
 */
export async function writeApplication(
  app: Application,
  { folder, target, force }: { readonly folder: string; readonly target: string; readonly force: boolean },
): Promise<{ readonly written: number; readonly removed: number }> {
  const before = await readManifest(folder);
  if (before === undefined && !force) await checkEmpty(folder);
  await mkdir(folder, { recursive: true });
  const top = await realpath(folder);
  const files = new Map([...app.files, [manifestName, toManifest(app, target)]]);
  const fresh = await mkdtemp(join(dirname(top), `.${basename(top)}-`));
  try {
    const changed: string[] = [];
    for (const [path, bytes] of files) {
      const there = await readFile(join(top, path)).catch(() => undefined);
      if (there?.equals(bytes) === true) continue;
      await mkdir(dirname(join(fresh, path)), { recursive: true });
      await writeFile(join(fresh, path), bytes);
      changed.push(path);
    }
    for (const path of changed) {
      await mkdir(dirname(join(top, path)), { recursive: true });
      await checkInside(top, path);
      await rename(join(fresh, path), join(top, path));
    }
    const gone = (before ?? []).filter((path) => !files.has(path));
    for (const path of gone) {
      await checkInside(top, path).then(
        () => rm(join(top, path), { force: true }),
        () => undefined,
      );
    }
    return { written: changed.length, removed: gone.length };
  } finally {
    await rm(fresh, { recursive: true, force: true });
  }
}

/** A server and npm leave these in the output in which they run. */
const ofRunning = new Set([".kit", "node_modules", "package-lock.json"]);

async function checkEmpty(folder: string): Promise<void> {
  const names = await readdir(folder).catch((error: NodeJS.ErrnoException) => {
    if (error.code === "ENOENT") return [];
    throw new KitError({
      code: "conflict",
      message: `${basename(folder)} is not a folder that can be written to.`,
      cause: error,
    });
  });
  const other = names.find((name) => !ofRunning.has(name));
  if (other === undefined) return;
  throw new KitError({
    code: "conflict",
    message: `${basename(folder)} contains ${other}, which kit build did not write; nothing was written.`,
    hint: "Name another folder with --out, or pass --force.",
  });
}

/** The files of an earlier build; undefined if there was none. Paths that lead out of the folder are left out. */
async function readManifest(folder: string): Promise<readonly string[] | undefined> {
  const text = await readFile(join(folder, manifestName), "utf8").catch(() => undefined);
  if (text === undefined) return undefined;
  try {
    const { files }: { readonly files?: unknown } = JSON.parse(text);
    return Object.keys(files ?? {}).filter(
      (path) => !path.startsWith("/") && !path.split(/[/\\]/).some((part) => part === ".." || part === ""),
    );
  } catch {
    return [];
  }
}

/** Throws `forbidden` where a link on the way leads out of the folder. */
async function checkInside(top: string, path: string): Promise<void> {
  const parent = await realpath(dirname(join(top, path)));
  if (parent === top || parent.startsWith(top + sep)) return;
  throw new KitError({
    code: "forbidden",
    message: `${path} lies behind a link that leads out of the output.`,
  });
}

/**
 * Writes the files of a target. A file that exists with other content is kept, unless `force` is set; it is among
 * the differences either way.
 */
export async function writeTargetFiles(
  files: readonly TargetFile[],
  { folder, force, check }: { readonly folder: string; readonly force: boolean; readonly check: boolean },
): Promise<{ readonly written: readonly string[]; readonly differences: readonly Difference[] }> {
  const written: string[] = [];
  const differences: Difference[] = [];
  for (const { path, content } of files) {
    const file = join(folder, path);
    const found = await lstat(file).catch(() => undefined);
    const before = found === undefined ? undefined : await readFile(file, "utf8");
    if (before === content) continue;
    if (before !== undefined) differences.push({ path, before, after: content });
    if (check || (before !== undefined && !force)) continue;
    await mkdir(dirname(file), { recursive: true });
    await checkInside(await realpath(folder), path);
    await writeFile(file, content);
    written.push(path);
  }
  return { written, differences };
}
