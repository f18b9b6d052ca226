import { lstat, readlink, realpath } from "node:fs/promises";
import { join } from "node:path";
import { KitError } from "../../base/kit-error.ts";
import { isSecretName } from "../../base/names.ts";
import { invalid } from "../../files/obstacle.ts";
import type { SandboxOwner } from "../contract.ts";
import { readProjectFile, readSkills } from "../project-files.ts";
import { type ArchivedFile, pack, writeArchive } from "./archive.ts";
import { gitOnProject } from "./git.ts";
import type { OpenMachine } from "./machine-link.ts";
import type { RemoteOptions } from "./remote-options.ts";
import { failure } from "./remote-view.ts";
import { scripts, withInput } from "./scripts.ts";

const maxUploadBytes = 512 * 1024 * 1024;

/** Fills the workspace of a new machine with the uploaded project files, the project's skills, and single files. */
export async function seedMachine(
  open: OpenMachine,
  { upload = false, files = {} }: Pick<RemoteOptions, "upload" | "files">,
  owner: SandboxOwner,
): Promise<void> {
  const root = owner.project_root === undefined ? undefined : await realpath(owner.project_root);
  if (upload !== false) {
    if (root === undefined) throw invalid("There is no project to upload.");
    await sendFiles(open, await readRepository(root, upload === true ? "" : upload), true);
  }
  const singleFiles = Object.entries(files).map(([path, content]) => ({
    path: checkPath(path),
    content: Buffer.from(content),
  }));
  const skills: ArchivedFile[] = [];
  if (root !== undefined && upload !== true) {
    for await (const file of readSkills(root, owner.skill_folders ?? []))
      if (!isSecretName(file.path)) skills.push(file);
  }
  if (singleFiles.length + skills.length > 0) await sendFiles(open, [...skills, ...singleFiles], false);
}

async function sendFiles(
  { machine, root }: OpenMachine,
  files: readonly ArchivedFile[],
  isBase: boolean,
): Promise<void> {
  const archive = Buffer.from(await pack(writeArchive(files)), "base64");
  const { exitCode } = await machine.run({
    ...withInput(scripts.seed, archive),
    args: [root, isBase ? "1" : "0", String(archive.length)],
    onOutput: () => undefined,
  });
  if (exitCode !== 0) throw failure(exitCode, "");
}

function checkPath(path: string): string {
  const names = path.split("/");
  if (
    path !== "" &&
    !path.includes("\0") &&
    !names.some((name) => name === "" || name === "." || name === "..")
  )
    return path;
  throw invalid(`${JSON.stringify(path.slice(0, 80))} is not a path of a file in the workspace.`);
}

/**
 * Reads the current state of a repository's tracked and new files below `folder`. Skips files that Git ignores and
 * files that hold secrets. Paths are relative to the root.
 */
async function readRepository(root: string, folder: string): Promise<readonly ArchivedFile[]> {
  const subfolder = folder.replace(/^\.?\/+|\/+$/g, "");
  const names = ["-z", "--cached", "--others", "--exclude-standard"];
  const below = subfolder === "" ? [] : ["--", subfolder];
  const listed = await gitOnProject(root, ["ls-files", ...names, ...below]);
  if (listed.status !== "ok") {
    throw new KitError({
      code: "invalid_request",
      message: "The project cannot be uploaded, because it is not in a Git repository.",
      hint: "kit asks Git which files to upload. Run 'git init' and add a .gitignore, or remove the option upload.",
    });
  }
  const paths = [...new Set(listed.stdout.toString().split("\0"))].filter((path) => path !== "");
  if (paths.length === 0 && subfolder !== "") throw invalid(`There is nothing to upload in ${subfolder}.`);
  const files: ArchivedFile[] = [];
  let size = 0;
  for (const path of paths.sort()) {
    if (isSecretName(path) || path.split("/").includes(".git") || path.split("/")[0] === ".kit") continue;
    const file = await readEntry(root, path);
    if (file === undefined) continue;
    files.push(file);
    size += file.content.length;
    if (size > maxUploadBytes) {
      throw new KitError({
        code: "payload_too_large",
        message: `The project is too large to upload: more than ${maxUploadBytes / 1024 / 1024} MiB.`,
        hint: 'Upload a folder of it: upload = "packages/api".',
      });
    }
  }
  return files;
}

/** Reads a file, or a link that stays in the project; `undefined` for deleted files and other kinds. */
async function readEntry(root: string, path: string): Promise<ArchivedFile | undefined> {
  const stats = await lstat(join(root, path)).catch(() => undefined);
  if (stats?.isSymbolicLink() === true) {
    const target = await readlink(join(root, path));
    return staysInside(path, target) ? { path, content: Buffer.from(target), isLink: true } : undefined;
  }
  if (stats?.isFile() !== true) return undefined;
  const content = await readProjectFile(root, path, maxUploadBytes);
  return content === undefined ? undefined : { path, content, executable: (stats.mode & 0o100) !== 0 };
}

/** Whether the target of a link at `path` lies in the project. */
export function staysInside(path: string, target: string): boolean {
  if (target.startsWith("/")) return false;
  let depth = path.split("/").length - 1;
  for (const name of target.split("/")) {
    if (name === "..") depth -= 1;
    else if (name !== "." && name !== "") depth += 1;
    if (depth < 0) return false;
  }
  return true;
}
