import { readdir, readFile, realpath } from "node:fs/promises";
import { basename, join } from "node:path";
import type { AgentProfile } from "../../agents/define/agent-profile.ts";
import { KitError } from "../../base/kit-error.ts";
import type { Application, DescribedAgent } from "../application.ts";
import { outputPath } from "../bundle-code.ts";
import { type BuildProblem, type OutputFiles, textFile } from "../bundler.ts";
import { type FoundPackage, findPackage, readJson } from "../packages.ts";

/** The engine and the sessions of a function need it, whatever the project uses. */
const driver = "pg";

/** Problems: parts of a project that need a disk, or a process that lives longer than a call. */
export function functionProblems(app: Application): readonly BuildProblem[] {
  return [
    ...storageProblems(app),
    ...app.agents.flatMap((agent) => agentProblems(agent, app)),
    ...mcpProblems(app),
  ];
}

const keepsNothing = "and the disk of a function is gone after a call";
const onPostgres = "On functions sessions and accepted work are in Postgres: set DATABASE_URL where it runs.";

function configName({ loaded }: Application): string {
  return loaded.file === undefined ? "The environment" : basename(loaded.file);
}

function storageProblems(app: Application): readonly BuildProblem[] {
  const { engine = {}, store } = app.loaded.config;
  const path = configName(app);
  const problems: BuildProblem[] = [];
  if (engine.kind === "embedded" || engine.folder !== undefined) {
    const setting = engine.folder === undefined ? 'engine.kind = "embedded"' : "engine.folder";
    problems.push({
      path,
      message: `has ${setting}: accepted work in SQLite on a disk, ${keepsNothing}.`,
      hint: `Leave it out, or set engine.kind = "postgres". ${onPostgres}`,
    });
  }
  if (store === "sqlite" || store === "memory") {
    problems.push({
      path,
      message: `has store = "${store}": sessions ${store === "sqlite" ? "in SQLite on a disk" : "in the memory of a process"}, ${keepsNothing}.`,
      hint: `Leave it out. ${onPostgres}`,
    });
  }
  if (typeof store === "object" && store.claim === undefined) {
    problems.push({
      path,
      message: "has its own session store without `claim`, and several functions write at a time.",
      hint: `Leave it out, or implement claim. ${onPostgres}`,
    });
  }
  if (findPackage(driver, app.root) === undefined) {
    problems.push({
      path: "package.json",
      message: `does not have the package ${driver}, which the engine and the sessions of a function need.`,
      hint: `Run: npm install ${driver}`,
    });
  }
  return problems;
}

function mcpProblems(app: Application): readonly BuildProblem[] {
  return Object.entries(app.loaded.config.mcp?.servers ?? {}).flatMap(([name, server]) =>
    server.command === undefined
      ? []
      : {
          path: configName(app),
          message: `has the MCP server ${JSON.stringify(name)}, a process that would start again with every call, and whose program the function does not have.`,
          hint: "Name the server by its url, or remove it for this target.",
        },
  );
}

/** Refuses agents, and their subagents, that work on the disk or run commands. */
function agentProblems({ path, profile }: DescribedAgent, app: Application): readonly BuildProblem[] {
  if (profile === undefined) return [];
  const { agent = {} } = app.loaded.config;
  const chosen = profile.sandbox ?? agent.sandbox ?? "virtual";
  const sandbox = typeof chosen === "string" ? chosen : chosen.name;
  if (sandbox === "local") {
    return [
      {
        path,
        message: "works in the project's own folder (local), and a function has no repository.",
        hint: "Give the agent a remote sandbox (docs/remote-sandboxes.md), or virtual().",
      },
    ];
  }
  if (sandbox !== "virtual") return [];
  const all = withSubagents(profile);
  const runs = all.some(
    (one) =>
      (one.allowShell ?? agent.allow_shell) === true ||
      (one.allowedCommands ?? agent.allowed_commands ?? []).length > 0 ||
      (one.commands ?? []).length > 0,
  );
  if (runs) {
    return [
      {
        path,
        message:
          "runs commands in a virtual workspace: a function does not have their programs, and cannot isolate them.",
        hint: "Give the agent a remote sandbox (docs/remote-sandboxes.md), or take its commands away.",
      },
    ];
  }
  if (!all.some((one) => (one.allowWrite ?? agent.allow_write) === true)) return [];
  return [
    {
      path,
      message: `writes files in a virtual workspace, ${keepsNothing}.`,
      hint: "Give the agent a remote sandbox (docs/remote-sandboxes.md), or take allowWrite away.",
    },
  ];
}

function withSubagents(profile: AgentProfile): readonly AgentProfile[] {
  return [profile, ...(profile.subagents ?? []).flatMap(withSubagents)];
}

/** Warnings about what works differently in a function. */
export function functionWarnings(app: Application, seconds: number): readonly string[] {
  const { server = {} } = app.loaded.config;
  const unknown = app.agents.filter(({ profile }) => profile === undefined);
  const streams = server.max_stream_seconds;
  return [
    `One call of the function has ${seconds} seconds. Longer work is handed on to the next scheduled call between two turns of a model and two steps of a workflow, so a single one must be done within ${seconds - handOnSeconds}.`,
    ...(streams !== undefined && streams > longestStream(seconds)
      ? [
          `server.max_stream_seconds is ${streams}: streams end after ${longestStream(seconds)} seconds, before the platform cuts them.`,
        ]
      : []),
    ...(server.rate_limit === undefined
      ? []
      : [
          "server.rate_limit is counted in each process of the function for itself: limit requests at the platform, too.",
        ]),
    ...unknown.map(
      ({ path }) =>
        `${path}: what the agent may do is not known before it runs. In a function it must not write files or run commands of this machine.`,
    ),
  ];
}

/** How long before its end a call hands over its work. */
const handOnSeconds = 10;

function longestStream(seconds: number): number {
  return Math.max(1, seconds - handOnSeconds - 2);
}

/** The files of an application for a function, below `folder`, complete with packages: no npm runs there. */
export async function functionFiles(app: Application, folder: string): Promise<OutputFiles> {
  const files: OutputFiles = new Map();
  const ofServers = new Set(["server.mjs", "package-lock.json"]);
  for (const [path, bytes] of app.files) if (!ofServers.has(path)) files.set(`${folder}/${path}`, bytes);
  const packages = await packageFiles([driver, ...Object.keys(app.dependencies)], app.root);
  const isLikeThere = process.platform === "linux" && process.arch === "x64";
  if (packages.native.length > 0 && !isLikeThere) throw nativeElsewhere(packages.native);
  for (const [path, bytes] of packages.files) files.set(`${folder}/${path}`, bytes);
  files.set(`${folder}/application.mjs`, textFile(applicationModule(app)));
  return files;
}

function nativeElsewhere(names: readonly string[]): KitError {
  return new KitError({
    code: "invalid_request",
    message: `${names.join(" and ")} has native code for this machine, and a function runs on Linux x64.`,
    hint: "Build on Linux x64, in CI for instance.",
  });
}

/** The project as data: its files are next to the module, which reads them when the function starts. */
function applicationModule({ name, snapshot }: Application): string {
  const modules = snapshot.modules.map(
    (path) => `    ${JSON.stringify(path)}: () => import(${JSON.stringify(`./${outputPath(path)}`)}),\n`,
  );
  return `// Made by kit build.
import { readFileSync } from "node:fs";
import { join } from "node:path";
const paths = ${JSON.stringify([...snapshot.files.keys()].sort(), null, 2)};
export const application = () => ({
  name: ${JSON.stringify(name)},
  files: Object.fromEntries(paths.map((path) => [path, readFileSync(join(import.meta.dirname, path))])),
  modules: {
${modules.join("")}  },
});
`;
}

interface PlacedPackage {
  /** The folder below the output: `node_modules/pg`, `node_modules/a/node_modules/b`. */
  readonly place: string;
  readonly found: FoundPackage;
}

/** Packages with all their dependencies, as an output contains them. */
interface PackageFiles {
  readonly files: OutputFiles;
  /** Packages with native code, which runs only on machines like this one. */
  readonly native: readonly string[];
}

/**
 * The package files for an output on which npm never runs: each package in `node_modules`, with its dependencies, at
 * the versions installed in this project. A package that is not installed is left out.
 */
async function packageFiles(names: readonly string[], from: string): Promise<PackageFiles> {
  const placed = await placePackages(names, from);
  const files: OutputFiles = new Map();
  const native = new Set<string>();
  for (const { place, found } of placed) {
    if (found.native !== undefined) native.add(found.name);
    for (const path of await filesOf(found.folder, ""))
      files.set(`${place}/${path}`, await readFile(join(found.folder, path)));
  }
  return { files, native: [...native].sort() };
}

/** The files of a package, without nested packages, which have paths of their own. */
async function filesOf(folder: string, below: string): Promise<readonly string[]> {
  const entries = await readdir(join(folder, below), { withFileTypes: true });
  const nested = entries
    .filter(({ name }) => name !== "node_modules")
    .map(async (entry) => {
      const path = below === "" ? entry.name : `${below}/${entry.name}`;
      if (entry.isDirectory()) return await filesOf(folder, path);
      return entry.isFile() ? [path] : [];
    });
  return (await Promise.all(nested)).flat().sort();
}

/** Chooses the path of each package, so that every importer finds the same version as in the project. */
async function placePackages(names: readonly string[], from: string): Promise<readonly PlacedPackage[]> {
  const placed = new Map<string, FoundPackage>();
  const waiting: { name: string; from: string; below: string }[] = names.map((name) => ({
    name,
    from,
    below: "",
  }));
  for (let next = waiting.shift(); next !== undefined; next = waiting.shift()) {
    const linked = findPackage(next.name, next.from);
    if (linked === undefined) continue;
    // A link leads to the folder in which the package finds its own.
    const found = { ...linked, folder: await realpath(linked.folder) };
    const seen = lookUp(placed, next.name, next.below);
    if (seen?.folder === found.folder) continue;
    const top = `node_modules/${next.name}`;
    const place = seen === undefined ? top : `${next.below}/${top}`;
    placed.set(place, found);
    for (const name of dependenciesOf(found)) waiting.push({ name, from: found.folder, below: place });
  }
  return [...placed].map(([place, found]) => ({ place, found }));
}

/** The package that a module of the package at `below` imports under a name. */
function lookUp(
  placed: ReadonlyMap<string, FoundPackage>,
  name: string,
  below: string,
): FoundPackage | undefined {
  for (let at = below; ; at = at.slice(0, Math.max(0, at.lastIndexOf("/node_modules/")))) {
    const found = placed.get(at === "" ? `node_modules/${name}` : `${at}/node_modules/${name}`);
    if (found !== undefined || at === "") return found;
  }
}

function dependenciesOf({ folder }: FoundPackage): readonly string[] {
  const {
    dependencies = {},
    optionalDependencies = {},
    peerDependencies = {},
  } = readJson(join(folder, "package.json"));
  return Object.keys({ ...dependencies, ...optionalDependencies, ...peerDependencies }).sort();
}
