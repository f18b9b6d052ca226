import { lstat, mkdir, mkdtemp, realpath, rename, rm } from "node:fs/promises";
import { dirname, join, resolve } from "node:path";
import { KitError } from "../../base/kit-error.ts";
import { findFiles } from "../../files/find-files.ts";
import { assertNoLinkOut, findPlace } from "../../files/find-place.ts";
import { hasCode } from "../../files/obstacle.ts";
import { readRegularFile } from "../../files/replace-file.ts";
import type { Sandbox, SandboxOwner } from "../contract.ts";
import { createHostSandbox } from "../host/create-host-sandbox.ts";
import { pickEnvironment } from "../host/exec/environment.ts";
import { mergeIsolation } from "../host/wall/find-wall.ts";
import { workspaceName } from "../host/workspace-name.ts";
import { folderOfAll, type VirtualOptions } from "./virtual-options.ts";

/** Opens the workspace of a session, and makes it when there is none. */
export async function openVirtual(options: VirtualOptions, owner: SandboxOwner): Promise<Sandbox> {
  refuseLinks(options, owner);
  const folder = await createFolder(folderOfAll(options, owner));
  const path = join(folder, workspaceName(owner));
  if (!(await isFolder(path))) {
    await createWorkspace(path, options, owner).catch((error: unknown) => {
      throw error instanceof KitError ? error : noFolder(error);
    });
  }
  const sandbox = toSandbox(path, options, owner);
  await copySkills(sandbox, owner);
  return sandbox;
}

/** Removes the workspace of a session, with the home folder of its commands. */
export async function removeVirtual(options: VirtualOptions, owner: SandboxOwner): Promise<void> {
  refuseLinks(options, owner);
  const path = join(folderOfAll(options, owner), workspaceName(owner));
  for (const each of [path, homeOf(path)]) await rm(each, { recursive: true, force: true });
}

/** A repository may bring links along where kit makes its folders. */
function refuseLinks({ root, folder }: VirtualOptions, owner: SandboxOwner): void {
  if (folder !== undefined) return;
  const own = `.kit/sandboxes/${workspaceName(owner)}`;
  assertNoLinkOut(root ?? owner.project_root ?? process.cwd(), [".kit", ".kit/sandboxes", own, homeOf(own)]);
}

const homeOf = (workspace: string): string => `${workspace}.home`;

function toSandbox(root: string, options: VirtualOptions, owner: SandboxOwner): Sandbox {
  return createHostSandbox("virtual", {
    root,
    calledRoot: root,
    async environment() {
      // Beside the workspace: what a model writes is not read as settings of the programs it runs.
      const home = homeOf(root);
      const temporary = join(home, "tmp");
      await mkdir(temporary, { recursive: true, mode: 0o700 });
      // The repository around the workspace, the project's for one, is not the workspace's.
      const own = { HOME: home, TMPDIR: temporary, LANG: "C.UTF-8", GIT_CEILING_DIRECTORIES: dirname(root) };
      return {
        ...pickEnvironment(["PATH", "SystemRoot", "ComSpec", "PATHEXT"], process.env),
        ...own,
        ...options.env,
      };
    },
    isolation: mergeIsolation(options, owner.isolation),
    hidden: [options.root ?? owner.project_root ?? process.cwd()].map((folder) => resolve(folder)),
    ownFolder: async () => join(homeOf(root), "wall"),
    // Ignore files above the workspace do not apply: projects ignore `.kit` as a whole.
    outerRules: () => [],
  });
}

/** A folder with more files, or a larger file, holds more than a skill. */
const mostSkillFiles = 500;
const mostSkillBytes = 1024 * 1024;

/**
 * Has the workspace hold the project's skills as they are now, because models are told where their files lie. What
 * cannot be read is left out, as it is of no use to a model either.
 */
async function copySkills(sandbox: Sandbox, owner: SandboxOwner): Promise<void> {
  const { project_root, skill_folders = [] } = owner;
  if (project_root === undefined || skill_folders.length === 0) return;
  const root = await realpath(project_root);
  for (const folder of skill_folders) {
    const { paths } = await findFiles(root, folder, { accepts: () => true });
    for (const path of paths.slice(0, mostSkillFiles)) {
      const bytes = await readProjectFile(root, path).catch(() => undefined);
      if (bytes === undefined) continue;
      const there = await sandbox.readBytes(path).catch(() => undefined);
      // A model may have put something in the way: then it has what it made of its own workspace.
      if (there === undefined || Buffer.compare(there, bytes) !== 0)
        await sandbox.writeBytes(path, bytes).catch(() => undefined);
    }
  }
}

async function readProjectFile(root: string, path: string): Promise<Uint8Array | undefined> {
  const place = await findPlace({ root, path });
  if (place === undefined) return undefined;
  try {
    return await readRegularFile(place, mostSkillBytes);
  } finally {
    await place.close();
  }
}

async function createFolder(folder: string): Promise<string> {
  try {
    await mkdir(folder, { recursive: true, mode: 0o700 });
    return await realpath(folder);
  } catch (error) {
    throw noFolder(error);
  }
}

const noFolder = (cause: unknown): KitError =>
  new KitError({
    code: "unavailable",
    message: "The folder of the virtual sandboxes cannot be created.",
    cause,
  });

async function isFolder(path: string): Promise<boolean> {
  // A link in its place would lead who knows where; it is refused, as a file is.
  return await lstat(path).then(
    (stats) => stats.isDirectory(),
    () => false,
  );
}

/** Fills a folder beside the place, and moves it there: a workspace is there with all its files, or not. */
async function createWorkspace(path: string, options: VirtualOptions, owner: SandboxOwner): Promise<void> {
  const fresh = await mkdtemp(join(dirname(path), ".new-"));
  try {
    const sandbox = toSandbox(fresh, options, owner);
    for (const [file, content] of Object.entries(options.files ?? {})) {
      if (typeof content === "string") await sandbox.writeFile(file, content);
      else await sandbox.writeBytes(file, content);
    }
    await rename(fresh, path);
  } catch (error) {
    await rm(fresh, { recursive: true, force: true });
    // Another caller opened the same session at the same time, and was first.
    if (hasCode(error, "ENOTEMPTY") || hasCode(error, "EEXIST")) return;
    throw error;
  }
}
