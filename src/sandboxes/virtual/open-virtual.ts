import { lstat, mkdir, mkdtemp, realpath, rename, rm } from "node:fs/promises";
import { dirname, join, resolve } from "node:path";
import { KitError } from "../../base/kit-error.ts";
import { assertNoLinkOut } from "../../files/find-place.ts";
import { hasCode } from "../../files/obstacle.ts";
import type { Sandbox, SandboxOwner } from "../contract.ts";
import { createHostSandbox } from "../host/create-host-sandbox.ts";
import { pickEnvironment } from "../host/exec/command-environment.ts";
import { mergeIsolation } from "../host/wall/find-wall.ts";
import { workspaceName } from "../host/workspace-name.ts";
import { readSkills } from "../project-files.ts";
import { folderOfAll, type VirtualOptions } from "./virtual-options.ts";

/** Opens the workspace of a session, and creates it if it is missing. */
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

/** A repository can contain links at the paths where kit creates its folders. */
function refuseLinks({ root, folder }: VirtualOptions, owner: SandboxOwner): void {
  if (folder !== undefined) return;
  const variables = `.kit/sandboxes/${workspaceName(owner)}`;
  assertNoLinkOut(root ?? owner.project_root ?? process.cwd(), [
    ".kit",
    ".kit/sandboxes",
    variables,
    homeOf(variables),
  ]);
}

const homeOf = (workspace: string): string => `${workspace}.home`;

function toSandbox(root: string, options: VirtualOptions, owner: SandboxOwner): Sandbox {
  return createHostSandbox("virtual", {
    root,
    calledRoot: root,
    async environment() {
      // Outside the workspace, so that programs do not read files of a model as their settings.
      const home = homeOf(root);
      const temporary = join(home, "tmp");
      await mkdir(temporary, { recursive: true, mode: 0o700 });
      // Git in the workspace must not find the repository around it, such as the project's.
      const variables = {
        HOME: home,
        TMPDIR: temporary,
        LANG: "C.UTF-8",
        GIT_CEILING_DIRECTORIES: dirname(root),
      };
      return {
        ...pickEnvironment(["PATH", "SystemRoot", "ComSpec", "PATHEXT"], process.env),
        ...variables,
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

/**
 * Copies the project's current skills into the workspace, because models are told the paths of their files.
 * Skips files that cannot be read.
 */
async function copySkills(sandbox: Sandbox, owner: SandboxOwner): Promise<void> {
  const { project_root, skill_folders = [] } = owner;
  if (project_root === undefined || skill_folders.length === 0) return;
  for await (const { path, content } of readSkills(await realpath(project_root), skill_folders)) {
    const present = await sandbox.readBytes(path).catch(() => undefined);
    // A model may have put something in the way of the file; then the workspace stays as it is.
    if (present === undefined || Buffer.compare(present, content) !== 0)
      await sandbox.writeBytes(path, content).catch(() => undefined);
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
  // A link could lead anywhere, so it does not count.
  return await lstat(path).then(
    (stats) => stats.isDirectory(),
    () => false,
  );
}

/** Fills a temporary folder and renames it, so that a workspace exists with all its files or not at all. */
async function createWorkspace(path: string, options: VirtualOptions, owner: SandboxOwner): Promise<void> {
  const newFolder = await mkdtemp(join(dirname(path), ".new-"));
  try {
    const sandbox = toSandbox(newFolder, options, owner);
    for (const [file, content] of Object.entries(options.files ?? {})) {
      if (typeof content === "string") await sandbox.writeFile(file, content);
      else await sandbox.writeBytes(file, content);
    }
    await rename(newFolder, path);
  } catch (error) {
    await rm(newFolder, { recursive: true, force: true });
    // Another caller opened the same session at the same time and created the workspace first.
    if (hasCode(error, "ENOTEMPTY") || hasCode(error, "EEXIST")) return;
    throw error;
  }
}
