import { lstat, mkdir, mkdtemp, readdir, readlink, realpath, rm, symlink } from "node:fs/promises";
import { tmpdir } from "node:os";
import { delimiter, dirname, isAbsolute, join, relative } from "node:path";
import { KitError } from "../../base/kit-error.ts";
import { createFileFinder, type ReportedTest, readReport } from "../../project/results/record-results.ts";
import type { IsolationOptions, Sandbox } from "../../sandboxes/contract.ts";
import { createHostSandbox } from "../../sandboxes/host/create-host-sandbox.ts";
import { removeAtExit, removeNow } from "../../sandboxes/host/wall/own-folders.ts";
import { isInside } from "../../sandboxes/host/workspace-path.ts";
import type { CheckPlace } from "../rule-checks/run-check.ts";
import type { Runner } from "./runners.ts";
import type { Listing, Trees } from "./trees.ts";

/** A test of a run. */
export interface TestCase extends Omit<ReportedTest, "locations"> {
  /** Relative to the project root; empty if the report does not say it. */
  readonly path: string;
}

/** One run of tests. */
export interface TestRun {
  readonly cases: readonly TestCase[];
  readonly timed_out: boolean;
  readonly duration_ms: number;
  /** The end of what the runner printed, for a run without a report. */
  readonly output: string;
  /** The report as the runner wrote it; empty if it wrote none that can be read. */
  readonly report: string;
}

export interface WorkplaceOptions {
  readonly trees: Trees;
  readonly runner: Runner;
  /** How dependencies get into a checkout: `link`, `none`, or a command that puts them there. */
  readonly setup: string;
  readonly timeoutMs: number;
  readonly isolation: IsolationOptions;
  readonly signal: AbortSignal | undefined;
  /** The top folder of the checkout whose packages are linked. */
  readonly packagesOf: string;
}

/** Folders with packages that a checkout gets. */
const mostPackageFolders = 200;
/** The end of a runner's output in the message of a run that failed. */
const outputLength = 1_500;

/**
 * A checkout of a listing that only the judge and the tests see: outside of the repository, isolated by the system where it can, without
 * secrets and network. The installed packages of the project are visible and read-only.
 */
export class Workplace implements AsyncDisposable {
  readonly #options: WorkplaceOptions;
  readonly #folder: string;
  readonly #listing: Listing;
  readonly #sandbox: Sandbox;
  #runs = 0;

  private constructor(
    options: WorkplaceOptions,
    { folder, listing, sandbox }: { folder: string; listing: Listing; sandbox: Sandbox },
  ) {
    this.#options = options;
    this.#folder = folder;
    this.#listing = listing;
    this.#sandbox = sandbox;
  }

  /** Throws `unavailable` if the setup command fails. */
  static async open(options: WorkplaceOptions, listing: Listing): Promise<Workplace> {
    const folder = await realpath(await mkdtemp(join(tmpdir(), "kit-verify-")));
    removeAtExit(folder);
    try {
      return await Workplace.#make(options, listing, folder);
    } catch (error) {
      await removeNow(folder);
      throw error;
    }
  }

  static async #make(options: WorkplaceOptions, listing: Listing, folder: string): Promise<Workplace> {
    const { trees, setup, isolation, timeoutMs, signal } = options;
    const root = join(folder, "work");
    for (const path of [root, join(root, "tree"), join(root, "out"), join(folder, "own", "home")])
      await mkdir(path, { recursive: true, mode: 0o700 });
    const tree = join(root, "tree");
    await trees.checkOut(listing, tree);
    await mkdir(join(tree, trees.prefix), { recursive: true });
    const installed = { top: options.packagesOf, prefix: trees.prefix };
    const linked = setup === "link" ? await linkPackages(installed, { listing, tree }) : [];
    const environment = {
      PATH: searchPath(installed, linked),
      HOME: join(folder, "own", "home"),
      TMPDIR: join(folder, "own"),
      LANG: "C.UTF-8",
      CI: "1",
      PYTHONDONTWRITEBYTECODE: "1",
    };
    const sandbox = createHostSandbox("verify", {
      root,
      calledRoot: root,
      environment: async () => environment,
      isolation,
      hidden: [],
      outerRules: () => [],
      ownFolder: async () => join(folder, "own"),
      release: () => removeNow(folder),
    });
    const place = new Workplace(options, { folder, listing, sandbox });
    if (setup !== "link" && setup !== "none") {
      const { exit_code, stdout, stderr } = await sandbox.exec({
        command: setup,
        cwd: place.#cwd,
        timeoutMs,
        signal,
      });
      if (exit_code !== 0) {
        await sandbox.close();
        throw new KitError({
          code: "unavailable",
          message: `The setup of the checkout failed: ${place.#withoutPaths(tailOf(`${stdout}\n${stderr}`))}`,
          hint: 'It runs without a network. specs.verify.setup in kit.toml is the command; "link" links the installed packages.',
        });
      }
    }
    return place;
  }

  /** Whether the system isolates the tests. */
  async isolated(): Promise<boolean> {
    return (await this.#sandbox.isolation?.())?.wall !== "none";
  }

  /** Runs the tests of some files, relative to the project root, or all of them. */
  async run(files?: readonly string[], timeoutMs: number = this.#options.timeoutMs): Promise<TestRun> {
    this.#runs += 1;
    const name = `out/report${this.#runs}`;
    const existing = files?.filter((path) => this.#listing.has(`${this.#options.trees.prefix}${path}`));
    if (existing?.length === 0)
      return { cases: [], timed_out: false, duration_ms: 0, output: "", report: "" };
    const result = await this.#sandbox.exec({
      command: this.#options.runner.command(join(this.#folder, "work", name), existing),
      cwd: this.#cwd,
      timeoutMs,
      signal: this.#options.signal,
    });
    const report = await this.#sandbox.readFile(name).catch(() => "");
    const cases = report === "" ? [] : await this.#read(report);
    const output = this.#withoutPaths(tailOf(`${result.stdout}\n${result.stderr}`));
    return {
      cases,
      report: cases.length === 0 ? "" : report,
      timed_out: result.timed_out,
      duration_ms: Math.round(result.duration_ms),
      output,
    };
  }

  /** The place for the checks of rules. */
  checkPlace(): CheckPlace {
    const { signal, trees } = this.#options;
    return {
      withoutRoot: (text) => this.#withoutPaths(text),
      isFile: (path) => this.#listing.has(`${trees.prefix}${path}`),
      exec: (request) => this.#sandbox.exec({ ...request, cwd: this.#cwd, signal }),
    };
  }

  /** Replaces the text of a file, relative to the project root. Follows no link: the tests may have put one there. */
  async write(path: string, text: string): Promise<void> {
    await this.#sandbox.writeFile(join(this.#cwd, path), text);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#sandbox.close();
  }

  get #cwd(): string {
    return join("tree", this.#options.trees.prefix);
  }

  async #read(report: string): Promise<readonly TestCase[]> {
    const { prefix } = this.#options.trees;
    const paths = [...this.#listing.keys()].flatMap((path) =>
      path.startsWith(prefix) ? [path.slice(prefix.length)] : [],
    );
    const root = join(this.#folder, "work", this.#cwd).replace(/\/$/, "");
    const find = createFileFinder({ root, files: () => paths, realPath: (path) => path });
    const tests = await readReport(report).then(
      (read) => read.tests,
      // A run that was ended early leaves a broken report, or one without tests.
      () => [],
    );
    return tests.map(({ locations, message, failure, ...test }) => ({
      ...test,
      message: message === undefined ? undefined : this.#withoutPaths(message),
      failure: failure === undefined ? undefined : this.#withoutPaths(failure),
      path: find(locations) ?? "",
    }));
  }

  /** Names files from the project on: a verdict leaves the machine, and its reader knows neither the checkout nor the server's folders. */
  #withoutPaths(text: string): string {
    const folders = [join(this.#folder, "work", this.#cwd), this.#folder, this.#options.trees.top];
    const starts = folders.map((folder) => `${folder.replace(/\/$/, "")}/`).filter((start) => start !== "/");
    return starts.reduce((rest, start) => rest.replaceAll(`file://${start}`, "").replaceAll(start, ""), text);
  }
}

function tailOf(output: string): string {
  const text = output.trim();
  return text.length <= outputLength ? text : `…${text.slice(-outputLength)}`;
}

/** A checkout with installed packages: its top folder, and the path from there to the project. */
export type Installed = Pick<Trees, "top" | "prefix">;

/** Entries of `node_modules` that hold caches, which each checkout has of its own. */
const caches = /^\.(?!bin$|pnpm$|package-lock\.json$|modules\.yaml$)/;

/**
 * Gives each package of a checkout a `node_modules` with links to what the project has installed. A link of a workspace, which leads
 * into the project, leads into the checkout instead: the tests must run the code that is judged. Returns the linked folders.
 */
async function linkPackages(
  { top, prefix }: Installed,
  { listing, tree }: { readonly listing: Listing; readonly tree: string },
): Promise<readonly string[]> {
  const folders = new Set(["", prefix.replace(/\/$/, "")]);
  for (const path of listing.keys())
    if (path.endsWith("/package.json") && folders.size < mostPackageFolders) folders.add(dirname(path));
  const linked: string[] = [];
  for (const folder of folders) {
    const installed = join(top, folder, "node_modules");
    const names = await readdir(installed).catch(() => []);
    if (names.length === 0) continue;
    linked.push(installed);
    const target = join(tree, folder, "node_modules");
    // A link in its place would lead the caches of tools into what the project has installed.
    const stats = await lstat(target).catch(() => undefined);
    if (stats?.isSymbolicLink() === true) await rm(target);
    await mkdir(target, { recursive: true });
    for (const name of names) {
      if (caches.test(name)) continue;
      if (!name.startsWith("@")) {
        await linkPackage(join(installed, name), join(target, name), { top, tree });
        continue;
      }
      await mkdir(join(target, name), { recursive: true });
      for (const part of await readdir(join(installed, name)).catch(() => []))
        await linkPackage(join(installed, name, part), join(target, name, part), { top, tree });
    }
  }
  return linked;
}

async function linkPackage(
  from: string,
  to: string,
  { top, tree }: { readonly top: string; readonly tree: string },
): Promise<void> {
  const stats = await lstat(from);
  const real = stats.isSymbolicLink() ? await realpath(from).catch(() => readlink(from)) : from;
  const isOfProject = isInside(top, real) && !relative(top, real).split("/").includes("node_modules");
  await symlink(isOfProject ? join(tree, relative(top, real)) : real, to).catch(() => undefined);
}

/**
 * The search path of an agent in another work tree of a checkout. The wall shows what is on it, and Node finds the packages there because
 * the work tree lies below them.
 */
export async function installedFolders({ top, prefix }: Installed): Promise<string> {
  const folders = [...new Set([top, join(top, prefix)])].map((folder) => join(folder, "node_modules"));
  const existing = await Promise.all(
    folders.map((folder) =>
      lstat(folder).then(
        () => folder,
        () => undefined,
      ),
    ),
  );
  return searchPath(
    { top, prefix },
    existing.filter((folder) => folder !== undefined),
  );
}

/** Where programs are found: those of the project, kit's own Node, then those of the user. */
export function searchPath({ top, prefix }: Installed, linked: readonly string[]): string {
  const environments = [".venv", "venv"].map((name) => join(top, prefix, name, "bin"));
  const others = (process.env.PATH ?? "").split(delimiter).filter((path) => isAbsolute(path));
  return [
    ...linked.map((folder) => join(folder, ".bin")).toReversed(),
    ...environments,
    dirname(process.execPath),
    ...others,
    // The wall shows the folders of a search path: a package folder without programs, too.
    ...linked,
  ].join(delimiter);
}
