import { spawn } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { basename, delimiter, dirname, isAbsolute, join } from "node:path";
import { createInterface } from "node:readline";
import type { Readable } from "node:stream";
import { onAbort } from "../../base/abort.ts";
import { KitError } from "../../base/kit-error.ts";
import type { ErrorCode } from "../../protocol/error-code.ts";
import { type ManagerName, managerNames } from "../choices.ts";
import type { CommandContext } from "../command.ts";
import { usageError } from "../report-error.ts";
import { safeLine } from "../text/safe-text.ts";

const lockFiles: Readonly<Record<string, ManagerName>> = {
  "package-lock.json": "npm",
  "npm-shrinkwrap.json": "npm",
  "pnpm-lock.yaml": "pnpm",
  "pnpm-workspace.yaml": "pnpm",
  "yarn.lock": "yarn",
  "bun.lock": "bun",
  "bun.lockb": "bun",
};

/**
 * The folder whose package.json lists the project's packages: the project's own, else the nearest one upward in its
 * repository.
 */
export function findPackageFolder(root: string): string {
  const packageFolder = foldersUpward(root).find((folder) => existsSync(join(folder, "package.json")));
  if (packageFolder !== undefined) return packageFolder;
  throw usageError(
    `There is no package.json in ${safeLine(basename(root))}, so packages cannot be installed.`,
    "Run: npm init -y",
  );
}

/** The command that installs packages in a folder with the project's package manager. */
export function installCommand(
  folder: string,
  specifiers: readonly string[],
  requested?: ManagerName,
): readonly string[] {
  const { name, isClassicYarn } = detectManager(folder, requested);
  const hasFile = (file: string): boolean => existsSync(join(folder, file));
  switch (name) {
    case "npm":
      return ["npm", "install", "--save", "--no-audit", "--no-fund", ...specifiers];
    case "pnpm":
      return ["pnpm", "add", ...(hasFile("pnpm-workspace.yaml") ? ["--workspace-root"] : []), ...specifiers];
    case "yarn": {
      const isRoot = isClassicYarn && manifestOf(folder).workspaces !== undefined;
      return ["yarn", "add", ...(isRoot ? ["--ignore-workspace-root-check"] : []), ...specifiers];
    }
    case "bun":
      return ["bun", "add", ...specifiers];
  }
}

interface Detected {
  readonly name: ManagerName;
  readonly isClassicYarn: boolean;
}

/**
 * Finds the package manager from the folder upward to the top of the repository: by package.json first, then by lock
 * file.
 */
function detectManager(start: string, requested: ManagerName | undefined): Detected {
  const folders = foldersUpward(start);
  const isModernYarn = folders.some((folder) => existsSync(join(folder, ".yarnrc.yml")));
  for (const folder of folders) {
    const stated = statedManager(manifestOf(folder), requested);
    if (stated !== undefined)
      return {
        name: stated.name,
        isClassicYarn: /^[01]\b/.test(stated.version) || !(stated.version || isModernYarn),
      };
    if (requested !== undefined) continue;
    const files = Object.keys(lockFiles).filter((file) => existsSync(join(folder, file)));
    const [name, other] = new Set(files.flatMap((file) => lockFiles[file] ?? []));
    if (other !== undefined)
      throw usageError(
        `The project has the lock files of several package managers: ${files.join(", ")}.`,
        `Remove what is not used, or name one: --with ${name}`,
      );
    if (name !== undefined) return { name, isClassicYarn: !isModernYarn };
  }
  return { name: requested ?? "npm", isClassicYarn: !isModernYarn };
}

/** The package manager that package.json names, unless the command line names another one. */
function statedManager(
  { packageManager, devEngines }: Manifest,
  requested: ManagerName | undefined,
): { readonly name: ManagerName; readonly version: string } | undefined {
  const engine: unknown = devEngines?.packageManager?.name;
  const text = typeof packageManager === "string" ? packageManager : engine;
  if (typeof text !== "string") return undefined;
  const [managerName = "", version = ""] = text.split("@");
  const name = managerNames.find((manager) => manager === managerName);
  if (requested !== undefined && name !== requested) return undefined;
  if (name === undefined)
    throw usageError(
      `package.json names the package manager ${safeLine(text)}, which kit does not know.`,
      `It knows ${managerNames.join(", ")}; --with names one.`,
    );
  return { name, version };
}

/**
 * Runs a package manager from PATH, without a shell, with its output on stderr. Throws `unavailable` if it is
 * missing or fails.
 */
export async function runManager(
  commandLine: readonly string[],
  { folder, context }: { readonly folder: string; readonly context: CommandContext },
): Promise<void> {
  const { output, signal } = context;
  signal.throwIfAborted();
  // A relative entry of PATH would be looked up in the project, which may hold an `npm` of its own.
  const path = (process.env.PATH ?? "").split(delimiter).filter((entry) => isAbsolute(entry));
  const [program = ""] = commandLine;
  const { file, args, ...how } = managerProcess(commandLine);
  const child = spawn(file, args, {
    ...how,
    cwd: folder,
    // The shell of Windows would look into the project first, too.
    env: { ...process.env, PATH: path.join(delimiter), NoDefaultCurrentDirectoryInExePath: "1" },
    stdio: ["ignore", "pipe", "pipe"],
  });
  const forget = onAbort(signal, () => child.kill("SIGINT"));
  const print = async (stream: Readable): Promise<void> => {
    for await (const line of createInterface({ input: stream }))
      output.note(output.noteStyle("dim", safeLine(line)));
  };
  try {
    const ended = new Promise<number | string>((resolve, reject) => {
      child.once("error", reject);
      child.once("close", (code, name) => resolve(code ?? name ?? ""));
    });
    const [code] = await Promise.all([ended, print(child.stdout), print(child.stderr)]);
    signal.throwIfAborted();
    if (code !== 0)
      throw failed(program, `ended with ${code}; the configuration is as it was`, "Its output is above.");
  } catch (error) {
    if (error instanceof Error && "code" in error && error.code === "ENOENT")
      throw failed(program, "is not found in PATH", `Install it, or name another one: --with npm`);
    throw error;
  } finally {
    forget();
  }
}

/** The command line that starts a package manager. On Windows they are `.cmd` files, which only its shell runs. */
export function managerProcess(
  commandLine: readonly string[],
  platform: NodeJS.Platform = process.platform,
): {
  readonly file: string;
  readonly args: readonly string[];
  readonly windowsVerbatimArguments?: true;
} {
  const [program = "", ...args] = commandLine;
  if (platform !== "win32") return { file: program, args };
  const line = commandLine.map((word) =>
    /^[\w@/.:=-]+$/.test(word) ? word : `"${word.replaceAll('"', "")}"`,
  );
  return {
    file: process.env.ComSpec ?? "cmd.exe",
    args: ["/d", "/s", "/c", `"${line.join(" ")}"`],
    windowsVerbatimArguments: true,
  };
}

function failed(program: string, failure: string, hint: string): KitError<ErrorCode> {
  return new KitError({ code: "unavailable", message: `${program} ${failure}.`, hint });
}

/** The folders from this one up to the top of its repository; only this one where there is no repository. */
function foldersUpward(start: string): readonly string[] {
  const folders = [start];
  while (!existsSync(join(folders.at(-1) ?? start, ".git"))) {
    const parent = dirname(folders.at(-1) ?? start);
    if (parent === folders.at(-1)) return [start];
    folders.push(parent);
  }
  return folders;
}

interface Manifest {
  readonly packageManager?: unknown;
  readonly devEngines?: { readonly packageManager?: { readonly name?: unknown } };
  readonly workspaces?: unknown;
}

function manifestOf(folder: string): Manifest {
  const file = join(folder, "package.json");
  return existsSync(file) ? readManifest(file) : {};
}

/** The content of a package.json, `{}` for one that is not an object. Throws `invalid_request` for invalid JSON. */
export function readManifest(file: string): object {
  try {
    const value: unknown = JSON.parse(readFileSync(file, "utf8").replace(/^\uFEFF/, ""));
    return typeof value === "object" && value !== null ? value : {};
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error;
    throw noJson(file, error);
  }
}

function noJson(file: string, cause: unknown): KitError {
  return new KitError({ code: "invalid_request", message: `${file} is not JSON.`, cause });
}
