import { createHash } from "node:crypto";
import { existsSync, realpathSync } from "node:fs";
import { dirname, join, relative, sep } from "node:path";
import type { AgentProfile } from "../agents/define/agent-profile.ts";
import type { LoadedConfig } from "../app/config/load-config.ts";
import { knownSecrets } from "../app/runtime/known-secrets.ts";
import type { SourceProblem } from "../app/sources/discover-sources.ts";
import { type ProjectSources, Sources } from "../app/sources/sources.ts";
import { tryAgents } from "../app/sources/try-agents.ts";
import { findRunner } from "../app/verify/runners.ts";
import { withDeadline } from "../base/abort.ts";
import { KitError } from "../base/kit-error.ts";
import { isKnownProvider, knownProviders } from "../models/provider-config.ts";
import type { Project } from "../project/project.ts";
import { listCriteria } from "../specs/coverage/list-criteria.ts";
import { bundleCode, outputPath } from "./bundle-code.ts";
import { type KitManifest, kitFiles, kitFolder, optionalPackages, readKitManifest } from "./bundle-kit.ts";
import { type BuildProblem, loadBundler, type OutputFiles, textFile } from "./bundler.ts";
import { collectFiles } from "./collect-files.ts";
import { lockOutput } from "./lock-file.ts";
import { findPackage, readJson } from "./packages.ts";

/** The description of an agent that kit can make without running it. */
export interface DescribedAgent {
  readonly name: string;
  readonly path: string;
  /** Undefined where its function needs a payload or a service to say what it is. */
  readonly profile: AgentProfile | undefined;
}

/**
 * The project's data: specs, guidelines and other files that a server reads, and which of its modules are agents,
 * workflows and webhooks.
 */
export interface Snapshot {
  readonly files: OutputFiles;
  /** Paths of source modules, relative to the project: agents, workflows, webhooks, and a configuration in code. */
  readonly modules: readonly string[];
}

/** A project as a folder that runs alone, in memory. */
export interface Application {
  /** The name of the project as packages and platforms take it. */
  readonly name: string;
  /** Absolute: the project's folder. */
  readonly root: string;
  /** The project's folder below the top of its Git repository; "" where it is the top, or in no repository. */
  readonly folder: string;
  readonly files: OutputFiles;
  /** The parts of `ApplicationData`, for a target that has no files. */
  readonly snapshot: Snapshot;
  /** Packages outside of the bundle, with exact versions. */
  readonly dependencies: Readonly<Record<string, string>>;
  /** Why `files` has no lock file for them; undefined if it has one, or if there is no package. */
  readonly unlocked: string | undefined;
  /** The reason why each imported package is not in the bundle, by package name. */
  readonly outside: ReadonlyMap<string, string>;
  /** Names of the variables to set where the application runs, keys first; without `KIT_API_KEYS`. */
  readonly variables: readonly string[];
  readonly sources: ProjectSources;
  /** Whether `kit specs verify` can judge a change: the specs have acceptance criteria, and kit knows how to run the tests. */
  readonly isJudged: boolean;
  readonly agents: readonly DescribedAgent[];
  readonly loaded: LoadedConfig;
  readonly kitVersion: string;
  readonly problems: readonly BuildProblem[];
  readonly warnings: readonly string[];
}

/** An output's manifest: the files that kit wrote there, so that kit can tell them from others. */
export const manifestName = "kit-build.json";

/**
 * Builds the application of a project in memory: its code in bundles, kit, and the files that they read. Writes
 * nothing; the same project gives the same bytes. `problems` lists what an output cannot contain.
 */
export async function createApplication(project: Project, loaded: LoadedConfig): Promise<Application> {
  const { root } = project;
  const bundler = await loadBundler();
  const manifest = await readKitManifest();
  const sources = await readSources(root);
  const problems = sources.problems.filter(isBlocking).map(toBuildProblem);
  const config = configModule(root, loaded.file);
  const entries = [...sources.agents, ...sources.workflows, ...sources.webhooks].map(({ path }) => path);
  const optional = optionalPackages(manifest);
  const modules = config === undefined ? entries : [...entries, config];
  const code = await bundleCode(bundler, { root, entries: modules, optional });
  const collected = await collectFiles(
    { project, loaded },
    { reads: code.reads, include: loaded.config.build?.include ?? [] },
  );
  const files: OutputFiles = new Map([
    ...collected.files,
    ...code.files,
    ...(await kitFiles(bundler, manifest, code.usesTesting)),
  ]);
  const dependencies = Object.fromEntries(
    [
      ...installedPeers(root, manifest),
      ...[...code.outside].map(([name, { version }]) => [name, version] as const),
    ].sort(([one], [other]) => (one < other ? -1 : 1)),
  );
  const agents = await describe(sources, loaded);
  // The output has the packages that the project depends on, whatever is installed beside kit.
  const tried = await tryAgents({
    root: realpathSync(root),
    agents: sources.agents,
    loaded,
    hasPackage: (name) => name in dependencies,
  });
  const name = nameOf(root, project.name);
  const lock =
    Object.keys(dependencies).length === 0
      ? undefined
      : lockOutput(realpathSync(root), { name, dependencies, engines });
  if (lock !== undefined && "text" in lock) files.set("package-lock.json", textFile(lock.text));
  files.set("package.json", textFile(packageJson(name, dependencies)));
  files.set("server.mjs", textFile(serverModule(config)));
  return {
    name,
    root,
    folder: folderInRepository(root),
    files,
    snapshot: { files: collected.files, modules },
    dependencies,
    unlocked: lock !== undefined && "missing" in lock ? lock.missing : undefined,
    outside: new Map([...code.outside].map(([name, { reason }]) => [name, reason])),
    variables: variablesOf(agents, loaded, code.variables),
    sources,
    isJudged: isJudged(project, loaded),
    agents,
    loaded,
    kitVersion: manifest.version,
    problems: [
      ...problems,
      ...tried.filter(isBlocking).map(toBuildProblem),
      ...collected.problems,
      ...leakedSecrets(files, loaded),
    ],
    warnings: [
      ...tried.filter((found) => !isBlocking(found)).map(toWarning),
      ...code.warnings,
      ...collected.warnings,
    ],
  };
}

function isBlocking({ isHarmless }: SourceProblem): boolean {
  return isHarmless !== true;
}

function toWarning({ path, message }: SourceProblem): string {
  return `${path}: ${message}`;
}

function toBuildProblem({ path, message }: SourceProblem): BuildProblem {
  return { path, message: `cannot be used: ${message}`, hint: "Mend it, or remove it." };
}

async function readSources(root: string): Promise<ProjectSources> {
  const sources = await Sources.open(root, { keepsWrites: false });
  try {
    return sources.loaded;
  } finally {
    sources.close();
  }
}

function isJudged(project: Project, { config }: LoadedConfig): boolean {
  if (listCriteria(project.specs.all()).criteria.length === 0) return false;
  const configured = config.specs?.verify?.test;
  const manifest = JSON.stringify(readJson(join(project.root, "package.json")));
  try {
    findRunner({ configured, manifest, files: project.files() });
    return true;
  } catch (error) {
    if (!(error instanceof KitError)) throw error;
    // A wrong setting is for its author to see, in the job.
    return configured !== undefined;
  }
}

/** The configuration, project-relative, where it is code. */
function configModule(root: string, file: string | undefined): string | undefined {
  if (file === undefined || file.endsWith(".toml")) return undefined;
  return relative(root, file).split(sep).join("/");
}

/** kit's optional packages that the project has asked for. */
function installedPeers(root: string, manifest: KitManifest): [string, string][] {
  const { dependencies = {} } = readJson(join(root, "package.json"));
  return optionalPackages(manifest).flatMap((name): [string, string][] => {
    if (!(name in dependencies)) return [];
    const version = findPackage(name, root)?.version;
    return version === undefined ? [] : [[name, version]];
  });
}

/**
 * The keys of providers whose models are named, a database address, and the variables that the project's code reads.
 */
function variablesOf(
  agents: readonly DescribedAgent[],
  { config }: LoadedConfig,
  read: readonly string[],
): readonly string[] {
  const models = [config.agent?.model, ...agents.map(({ profile }) => profile?.model)].flat();
  const keys = models.flatMap((model): readonly string[] => {
    const provider = typeof model === "string" ? (model.split(/[/:]/, 1)[0]?.toLowerCase() ?? "") : "";
    return isKnownProvider(provider) ? knownProviders[provider].keys.slice(0, 1) : [];
  });
  const store = typeof config.store === "string" && config.store.startsWith("postgres") ? ["KIT_STORE"] : [];
  return [...new Set([...keys, ...store, ...read])].filter(isVariableName);
}

/** Names that every platform takes. */
function isVariableName(name: string): boolean {
  return /^[A-Za-z_][A-Za-z0-9_]{0,127}$/.test(name) && name !== "KIT_API_KEYS";
}

/** How long an agent's function may take to describe it, in ms. */
const describeMs = 2_000;

async function describe(
  { agents }: ProjectSources,
  { environment }: LoadedConfig,
): Promise<readonly DescribedAgent[]> {
  return await Promise.all(
    agents.map(async ({ name, path, definition }) => {
      const profile = await withDeadline(
        definition.describe({ id: "build", env: environment, payload: {} }),
        {
          ms: describeMs,
          onTimeout: () => new Error("It takes too long."),
        },
      ).catch(() => undefined);
      return { name, path, profile };
    }),
  );
}

/**
 * The secrets of this machine's environment and of the configuration must not get into a file: they become variables
 * of the target.
 */
function leakedSecrets(files: OutputFiles, loaded: LoadedConfig): readonly BuildProblem[] {
  const secrets = [...knownSecrets(loaded.environment, loaded.config), ...(loaded.fileSecrets ?? [])];
  const own = [...files].filter(([path]) => !path.startsWith(`${kitFolder}/`) && !path.startsWith("chunks/"));
  return own.flatMap(([path, bytes]) => {
    const text = Buffer.from(bytes).toString("utf8");
    if (!secrets.some((secret) => text.includes(secret))) return [];
    return {
      path,
      message: "holds a secret in full, which would be part of the output.",
      hint: "Read it from a variable, and set that where the output runs.",
    };
  });
}

function folderInRepository(root: string): string {
  for (let top = root; ; top = dirname(top)) {
    if (existsSync(join(top, ".git"))) return relative(top, root).split(sep).join("/");
    if (dirname(top) === top) return "";
  }
}

/** A name that npm, Fly and others accept: lower case, digits and hyphens. */
function nameOf(root: string, folder: string): string {
  const own: unknown = readJson(join(root, "package.json")).name;
  const name = (typeof own === "string" ? own : folder)
    .toLowerCase()
    .replace(/^@[^/]*\//, "")
    .replace(/[^a-z0-9]+/g, "-")
    .replace(/^-+|-+$/g, "")
    .slice(0, 50)
    .replace(/-+$/, "");
  return name === "" || name === "kit" ? "kit-app" : name;
}

const engines = { node: ">=24" };

function packageJson(name: string, dependencies: Readonly<Record<string, string>>): string {
  const value = {
    name,
    private: true,
    type: "module",
    engines,
    scripts: { start: "node server.mjs" },
    // Makes the project's code import this one copy of kit.
    imports: { "#kit": `./${kitFolder}/dist/index.js`, "#kit/*": `./${kitFolder}/dist/*/index.js` },
    dependencies,
  };
  return `${JSON.stringify(value, null, 2)}\n`;
}

function serverModule(config: string | undefined): string {
  const output = config === undefined ? undefined : outputPath(config);
  const configArgs = output === undefined || /^kit\.config\.m?js$/.test(output) ? [] : ["--config", output];
  const words = ["start", ...configArgs].map((word) => JSON.stringify(word)).join(", ");
  return `// Made by kit build. Serves the agents of this folder, as 'kit start' does; takes its options, such as --port 8080.
const { KIT_ENVIRONMENT_HANDED_OVER: isRestarted, PORT } = process.env;
process.chdir(import.meta.dirname);
// Platforms say by PORT where they expect a server, and send requests from other machines.
if (PORT !== undefined && process.env.KIT_PORT === undefined) process.env.KIT_PORT = PORT;
// The operator has built and deployed this folder: its configuration may say where keys go.
process.env.KIT_TRUST ??= "1";
if (isRestarted === undefined) process.argv.splice(2, 0, ${words}, "--cwd", import.meta.dirname);
await import("./${kitFolder}/bin/kit.mjs");
`;
}

/** The manifest of the files that kit writes: their digests, by path. */
export function toManifest(app: Application, target: string): Uint8Array {
  const files = Object.fromEntries(
    [...app.files]
      .map(([path, bytes]) => [path, createHash("sha256").update(bytes).digest("hex")] as const)
      .sort(([one], [other]) => (one < other ? -1 : 1)),
  );
  return textFile(`${JSON.stringify({ kit: app.kitVersion, target, files }, null, 2)}\n`);
}
