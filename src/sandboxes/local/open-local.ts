import { mkdir, mkdtemp, realpath, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { KitError } from "../../base/kit-error.ts";
import { loadOuterRules } from "../../files/ignore-scope.ts";
import { runGit } from "../../processes/git.ts";
import type { IsolationOptions, Sandbox, SandboxOwner } from "../contract.ts";
import { createHostSandbox } from "../host/create-host-sandbox.ts";
import { basicNames, pickEnvironment } from "../host/exec/command-environment.ts";
import { mergeIsolation } from "../host/wall/find-wall.ts";
import { finishWorkspace } from "../host/wall/guard-workspace.ts";
import { recordsFolder } from "../host/wall/killed-commands.ts";
import { removeAtExit, removeNow } from "../host/wall/own-folders.ts";
import { isInside } from "../host/workspace-path.ts";

/** Throws `unavailable` if the folder cannot be opened. */
export async function openLocal(options: LocalOptions, owner: SandboxOwner): Promise<Sandbox> {
  const calledRoot = resolve(options.root ?? owner.project_root ?? process.cwd());
  const root = await folderAt(calledRoot);
  const environment = environmentOf(options.env ?? []);
  const project = owner.project_root;
  const state = project === undefined ? undefined : join(project, ".kit");
  const ownFolder = createOwnFolder();
  const hidden = [...new Set([join(root, ".kit"), state ?? root, recordsFolder()])].filter(
    (folder) => folder !== root,
  );
  const kept = state === undefined ? {} : { state };
  finishWorkspace({ root, hidden, ...kept });
  return createHostSandbox(
    "local",
    {
      root,
      calledRoot,
      environment: async () => environment,
      outerRules: () => loadOuterRules(root),
      isolation: mergeIsolation(options, owner.isolation),
      hidden,
      ...(options.readOnlyRepository === true ? { readsRepository: true } : {}),
      ...kept,
      ...(state !== undefined && isInside(root, state) ? { stateFolder: state } : {}),
      ownFolder: ownFolder.make,
      release: ownFolder.remove,
    },
    { shared: true },
  );
}

/** A folder for the commands of one sandbox, created on first use and removed with the sandbox. */
function createOwnFolder(): { make(): Promise<string>; remove(): Promise<void> } {
  let pendingFolder: Promise<string> | undefined;
  return {
    make() {
      pendingFolder ??= mkdtemp(join(tmpdir(), "kit-sandbox-")).then(async (folder) => {
        removeAtExit(folder);
        await mkdir(join(folder, "home"), { mode: 0o700 });
        const identity = await gitIdentity();
        if (identity !== "") await writeFile(join(folder, "home", ".gitconfig"), identity);
        return await realpath(folder);
      });
      return pendingFolder;
    },
    async remove() {
      const folder = await pendingFolder?.catch(() => undefined);
      pendingFolder = undefined;
      if (folder !== undefined) await removeNow(folder);
    },
  };
}

let identity: Promise<string> | undefined;

/** The user's name and address for commits; the rest of their Git settings stays out, as it may hold keys. */
async function gitIdentity(): Promise<string> {
  identity ??= runGit(["config", "--global", "--null", "--get-regexp", "^user\\.(name|email)$"], {
    cwd: "/",
    timeoutMs: 5_000,
  }).then((result) => {
    const lines = result.status === "ok" ? result.stdout.toString().split("\0") : [];
    const settings = lines
      .filter((line) => line !== "")
      .map((line) => {
        const [name = "", ...value] = line.split("\n");
        return `\t${name.slice("user.".length)} = "${value.join(" ").replace(/["\\]/g, "\\$&")}"\n`;
      });
    return settings.length === 0 ? "" : `[user]\n${settings.join("")}`;
  });
  return await identity;
}

function environmentOf(env: NonNullable<LocalOptions["env"]>): Record<string, string> {
  const basics = pickEnvironment(basicNames, process.env);
  const listed = isList(env) ? pickEnvironment(env, process.env) : pickEnvironment(Object.keys(env), env);
  return { ...basics, ...listed };
}

function isList(env: NonNullable<LocalOptions["env"]>): env is readonly string[] {
  return Array.isArray(env);
}

async function folderAt(root: string): Promise<string> {
  try {
    const path = await realpath(root);
    if ((await stat(path)).isDirectory()) return path;
  } catch (error) {
    throw noFolder(error);
  }
  throw noFolder();
}

function noFolder(cause?: unknown): KitError {
  return new KitError({
    code: "unavailable",
    message: "The folder of the local sandbox cannot be opened.",
    hint: "Set `root` of local(), or `sandbox.options.root` of the configuration, to a folder that exists.",
    cause,
  });
}

export interface LocalOptions extends IsolationOptions {
  /** The workspace; default: the root of the agent's project, otherwise the current folder of the process. */
  readonly root?: string;
  /**
   * Whether commands can only read the repository of the workspace: no commit, no branch, no index of theirs counts. Needs isolation.
   * Default false.
   */
  readonly readOnlyRepository?: boolean;
  /**
   * Variables for commands in addition to `PATH`, `HOME`, the language and the like: names of variables of this
   * process (`["NODE_ENV"]`), or values (`{ NODE_ENV: "test" }`). No other variables are passed on.
   */
  readonly env?: readonly string[] | Readonly<Record<string, string | undefined>>;
}
