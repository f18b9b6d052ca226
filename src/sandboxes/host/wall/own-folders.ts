import { rmSync } from "node:fs";
import { chmod, cp, lstat, mkdir, mkdtemp, realpath, rm, writeFile } from "node:fs/promises";
import { tmpdir, userInfo } from "node:os";
import { join } from "node:path";
import { KitError } from "../../../base/kit-error.ts";
import type { Workspace } from "../workspace-path.ts";
import { innerHome } from "./bubblewrap.ts";
import { syscallFilter } from "./syscall-filter.ts";
import { etcNames, systemParts } from "./system-folders.ts";

/** The folders of a sandbox on the host, outside its workspace. */
export interface OwnFolders {
  readonly folder: string;
  readonly home: string;
  readonly temporary: string;
  readonly sockets: string;
}

/** Files on the host that all isolated commands of this process share. */
export interface WallParts {
  /** The folder mounted as `/etc`. */
  readonly etc: string;
  /** The file of the system-call filter; `undefined` for a processor without one. */
  readonly filter: string | undefined;
  /** The folder for copies of repositories. */
  readonly copies: string;
  /** An empty file. */
  readonly empty: string;
}

const ready = new WeakMap<Workspace["ownFolder"], Promise<OwnFolders>>();

/** Creates the folders for the first command. */
export function ownFoldersOf({ ownFolder }: Workspace): Promise<OwnFolders> {
  const pending = ready.get(ownFolder);
  if (pending !== undefined) return pending;
  const making = make(ownFolder);
  ready.set(ownFolder, making);
  // After a failure, the next command tries again.
  making.catch(() => ready.delete(ownFolder));
  return making;
}

async function make(ownFolder: Workspace["ownFolder"]): Promise<OwnFolders> {
  const folder = await ownFolder();
  const at = (name: string): string => join(folder, name);
  for (const path of [folder, ...["home", "tmp", "run"].map(at)]) await ensureFolder(path);
  return { folder, home: at("home"), temporary: at("tmp"), sockets: at("run") };
}

let parts: Promise<WallParts> | undefined;

/** Creates the shared files once. Small files are copied, because each mount slows a command down. */
export function wallParts(): Promise<WallParts> {
  parts ??= makeParts().catch((error: unknown) => {
    parts = undefined;
    throw error;
  });
  return parts;
}

async function makeParts(): Promise<WallParts> {
  const folder = await realpath(await mkdtemp(join(tmpdir(), "kit-wall-")));
  removeAtExit(folder);
  const etc = join(folder, "etc");
  await mkdir(etc, { mode: 0o755 });
  for (const name of etcNames) {
    // Skip a path that the system lacks or this user cannot read.
    await cp(join("/etc", name), join(etc, name), { recursive: true, verbatimSymlinks: true }).catch(
      () => undefined,
    );
  }
  for (const [name, text] of Object.entries(machineFiles())) await writeFile(join(etc, name), text);
  for (const { path } of systemParts()) {
    if (path.startsWith("/etc/")) await mkdir(join(folder, path), { recursive: true });
  }
  await writeFile(join(folder, "empty"), "");
  const filter = syscallFilter(process.arch);
  if (filter !== undefined) await writeFile(join(folder, "filter"), filter);
  return {
    etc,
    filter: filter === undefined ? undefined : join(folder, "filter"),
    copies: join(folder, "repositories"),
    empty: join(folder, "empty"),
  };
}

const leftovers = new Set<string>();
let isListening = false;

/** Removes a folder when the process exits, unless `removeNow` did so before. */
export function removeAtExit(folder: string): void {
  leftovers.add(folder);
  if (isListening) return;
  isListening = true;
  process.once("exit", () => {
    for (const each of leftovers) rmSync(each, { recursive: true, force: true });
  });
}

export async function removeNow(folder: string): Promise<void> {
  await rm(folder, { recursive: true, force: true });
  leftovers.delete(folder);
}

async function ensureFolder(path: string): Promise<void> {
  await mkdir(path, { recursive: true, mode: 0o700 });
  // Mounting a link would make its target visible.
  if ((await lstat(path)).isDirectory()) return await chmod(path, 0o700);
  throw new KitError({ code: "unavailable", message: "A folder of the sandbox was replaced by a link." });
}

/** Files of `/etc` that name only the user of this process and only this machine. */
function machineFiles(): Readonly<Record<string, string>> {
  const { uid, gid, username } = userInfo();
  const name = /^[a-z_][a-z0-9_-]*$/i.test(username) ? username : "kit";
  const unmapped = uid === 65_534 ? "" : "nobody:x:65534:65534:nobody:/:/bin/false\n";
  const nogroup = gid === 65_534 ? "" : "nogroup:x:65534:\n";
  return {
    passwd: `${name}:x:${uid}:${gid}:${name}:${innerHome}:/bin/sh\n${unmapped}`,
    group: `${name}:x:${gid}:\n${nogroup}`,
    hosts: "127.0.0.1 localhost sandbox\n::1 localhost sandbox\n",
  };
}
