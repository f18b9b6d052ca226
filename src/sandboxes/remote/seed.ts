import { lstat, readlink, realpath } from "node:fs/promises";
import { join } from "node:path";
import { KitError } from "../../base/kit-error.ts";
import { isSecretName } from "../../base/names.ts";
import { findFiles } from "../../files/find-files.ts";
import { findPlace } from "../../files/find-place.ts";
import { invalid } from "../../files/obstacle.ts";
import { readRegularFile } from "../../files/replace-file.ts";
import type { SandboxOwner } from "../contract.ts";
import { type ArchivedFile, pack, writeArchive } from "./archive.ts";
import { git } from "./git.ts";
import type { OpenMachine } from "./machine-link.ts";
import type { RemoteOptions } from "./remote-options.ts";
import { failure } from "./remote-view.ts";
import { scripts, withInput } from "./scripts.ts";

const mostBytes = 512 * 1024 * 1024;
const mostSkillFiles = 500;

/** Fills the workspace of a new machine: what is uploaded of the project, the project's skills, and single files. */
export async function seedMachine(
  open: OpenMachine,
  { upload = false, files = {} }: Pick<RemoteOptions, "upload" | "files">,
  owner: SandboxOwner,
): Promise<void> {
  const root = owner.project_root === undefined ? undefined : await realpath(owner.project_root);
  if (upload !== false) {
    if (root === undefined) throw invalid("There is no project to upload.");
    await send(open, await readRepository(root, upload === true ? "" : upload), true);
  }
  const own = Object.entries(files).map(([path, content]) => ({
    path: checked(path),
    content: Buffer.from(content),
  }));
  const skills =
    root === undefined || upload === true ? [] : await readSkills(root, owner.skill_folders ?? []);
  if (own.length + skills.length > 0) await send(open, [...skills, ...own], false);
}

async function send(
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

function checked(path: string): string {
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
 * The files of a repository that a machine gets: those that Git tracks, and new ones, as they are now; below `folder`
 * where one is named, under their paths from the root. What Git ignores and what holds secrets stays here.
 */
async function readRepository(root: string, folder: string): Promise<readonly ArchivedFile[]> {
  const below = folder.replace(/^\.?\/+|\/+$/g, "");
  const names = ["--literal-pathspecs", "ls-files", "-z", "--cached", "--others", "--exclude-standard"];
  const listed = await git(root, [...names, ...(below === "" ? [] : ["--", below])]);
  if (listed.exitCode !== 0) {
    throw new KitError({
      code: "invalid_request",
      message: "The project cannot be uploaded: it is in no Git repository.",
      hint: "What is uploaded goes by the state of Git: run 'git init' and add a .gitignore, or leave out upload.",
    });
  }
  const paths = [...new Set(listed.stdout.toString("utf8").split("\0"))].filter((path) => path !== "");
  if (paths.length === 0 && below !== "") throw invalid(`There is nothing to upload in ${below}.`);
  const files: ArchivedFile[] = [];
  let size = 0;
  for (const path of paths.sort()) {
    if (isSecretName(path) || path.split("/").includes(".git") || path.split("/")[0] === ".kit") continue;
    const file = await readEntry(root, path);
    if (file === undefined) continue;
    files.push(file);
    size += file.content.length;
    if (size > mostBytes) {
      throw new KitError({
        code: "payload_too_large",
        message: `The project is too large to upload: more than ${mostBytes / 1024 / 1024} MiB.`,
        hint: 'Upload a folder of it: upload = "packages/api".',
      });
    }
  }
  return files;
}

/** A file as it is now; a link that stays in the project; nothing of what is deleted, or of another kind. */
async function readEntry(root: string, path: string): Promise<ArchivedFile | undefined> {
  const stats = await lstat(join(root, path)).catch(() => undefined);
  if (stats?.isSymbolicLink() === true) {
    const target = await readlink(join(root, path));
    return staysInside(path, target) ? { path, content: Buffer.from(target), isLink: true } : undefined;
  }
  if (stats?.isFile() !== true) return undefined;
  const content = await readProjectFile(root, path, mostBytes);
  return content === undefined ? undefined : { path, content, executable: (stats.mode & 0o100) !== 0 };
}

/** Whether a link at that path leads to a place of the project. */
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

async function readProjectFile(root: string, path: string, maxBytes: number): Promise<Buffer | undefined> {
  const place = await findPlace({ root, path });
  if (place === undefined) return undefined;
  try {
    const bytes = await readRegularFile(place, maxBytes);
    return bytes === undefined ? undefined : Buffer.from(bytes);
  } finally {
    await place.close();
  }
}

/** Models are told where the files of skills lie. What cannot be read is of no use to a model either. */
async function readSkills(root: string, folders: readonly string[]): Promise<readonly ArchivedFile[]> {
  const files: ArchivedFile[] = [];
  for (const folder of folders) {
    const { paths } = await findFiles(root, folder, { accepts: () => true });
    for (const path of paths.slice(0, mostSkillFiles)) {
      const content = await readProjectFile(root, path, 1024 * 1024).catch(() => undefined);
      if (content !== undefined && !isSecretName(path)) files.push({ path, content });
    }
  }
  return files;
}
