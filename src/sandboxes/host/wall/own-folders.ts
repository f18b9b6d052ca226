import { chmod, lstat, mkdir, writeFile } from "node:fs/promises";
import { userInfo } from "node:os";
import { join } from "node:path";
import { KitError } from "../../../base/kit-error.ts";
import type { Workspace } from "../workspace.ts";
import { innerHome } from "./bubblewrap.ts";
import { syscallFilter } from "./syscall-filter.ts";

/** The folders of a sandbox beside its workspace, on the host. */
export interface OwnFolders {
  readonly folder: string;
  readonly home: string;
  readonly temporary: string;
  /** Small files that stand in for those of the machine. */
  readonly etc: string;
  readonly sockets: string;
  /** The filter of system calls; undefined for a processor that has none. */
  readonly filter: string | undefined;
}

const ready = new WeakMap<Workspace["ownFolder"], Promise<OwnFolders>>();

/** Makes the folders when the first command asks for them. */
export function ownFoldersOf({ ownFolder }: Workspace): Promise<OwnFolders> {
  const made = ready.get(ownFolder);
  if (made !== undefined) return made;
  const making = make(ownFolder);
  ready.set(ownFolder, making);
  // The next command tries again.
  making.catch(() => ready.delete(ownFolder));
  return making;
}

async function make(ownFolder: Workspace["ownFolder"]): Promise<OwnFolders> {
  const folder = await ownFolder();
  const at = (name: string): string => join(folder, name);
  for (const path of [folder, ...["home", "tmp", "etc", "run"].map(at)]) await ensureFolder(path);
  const filter = syscallFilter(process.arch);
  for (const [name, text] of Object.entries(machineFiles())) await writeFile(join(at("etc"), name), text);
  if (filter !== undefined) await writeFile(at("filter"), filter);
  return {
    folder,
    home: at("home"),
    temporary: at("tmp"),
    etc: at("etc"),
    sockets: at("run"),
    filter: filter === undefined ? undefined : at("filter"),
  };
}

async function ensureFolder(path: string): Promise<void> {
  await mkdir(path, { recursive: true, mode: 0o700 });
  // A link in its place would be seen in place of what it leads to.
  if ((await lstat(path)).isDirectory()) return await chmod(path, 0o700);
  throw new KitError({ code: "unavailable", message: "The sandbox's own folder has a link in its place." });
}

/** Names for the user of this process and for nobody else, and for this machine alone. */
function machineFiles(): Readonly<Record<string, string>> {
  const { uid, gid, username } = userInfo();
  const name = /^[a-z_][a-z0-9_-]*$/i.test(username) ? username : "kit";
  const nobody = uid === 65_534 ? "" : "nobody:x:65534:65534:nobody:/:/bin/false\n";
  const nogroup = gid === 65_534 ? "" : "nogroup:x:65534:\n";
  return {
    passwd: `${name}:x:${uid}:${gid}:${name}:${innerHome}:/bin/sh\n${nobody}`,
    group: `${name}:x:${gid}:\n${nogroup}`,
    hosts: "127.0.0.1 localhost sandbox\n::1 localhost sandbox\n",
  };
}
