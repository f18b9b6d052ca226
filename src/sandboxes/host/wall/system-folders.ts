import {
  existsSync,
  lstatSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  realpathSync,
  statSync,
} from "node:fs";
import { basename, delimiter, dirname, isAbsolute, join, resolve } from "node:path";
import { attempt } from "../../../base/attempt.ts";
import { isInside } from "../workspace-path.ts";

/** The folders of the machine that commands see; none of them holds people's files. */
const systemFolders = [
  "/usr",
  "/bin",
  "/sbin",
  "/lib",
  "/lib32",
  "/lib64",
  "/libx32",
  "/nix/store",
  "/gnu/store",
];

/** Folders of /etc that are mounted instead of copied, because certificates and Java settings are large. */
const etcFolders = ["pki/ca-trust/extracted", "pki/tls/certs", "crypto-policies"];
const etcJava = /^java-\d+/;

/** Other files of /etc that programs read, such as library paths, certificates, service names and the time zone. */
export const etcNames: readonly string[] = [
  "ld.so.cache",
  "alternatives",
  "ssl/certs",
  "ssl/cert.pem",
  "ssl/openssl.cnf",
  "pki/tls/cert.pem",
  "pki/tls/openssl.cnf",
  "localtime",
  "timezone",
  "nsswitch.conf",
  "protocols",
  "services",
  "mime.types",
  "fonts",
  "os-release",
  "debian_version",
  "perl",
  "python3",
];

/** A file or folder to mount at its own path, or a link to create with the same target. */
export interface Visible {
  readonly path: string;
  readonly linksTo?: string;
}

/** The parts of the machine that every command sees. */
export function systemParts(): readonly Visible[] {
  const java = namesIn("/etc").filter((name) => etcJava.test(name));
  return [...systemFolders, ...[...etcFolders, ...java].map((name) => `/etc/${name}`)].flatMap((path) => {
    const stats = lstatSync(path, { throwIfNoEntry: false });
    if (stats === undefined) return [];
    return stats.isSymbolicLink() ? [{ path, linksTo: readlinkSync(path) }] : [{ path }];
  });
}

/** Whether every command sees the path. */
export function isOfSystem(path: string): boolean {
  return systemFolders.some((folder) => isInside(folder, path));
}

/**
 * The folders and files outside the system folders that the programs of a search path and Node need: the folders
 * themselves, the libraries next to them, and the targets of their links. Never includes a folder of `avoid`, or
 * one that contains it.
 */
export function toolFolders(path: string, avoid: readonly string[]): readonly string[] {
  const found = new Set<string>();
  const add = (each: string): void => {
    if (!isOfSystem(each) && existsSync(each)) found.add(each);
  };
  const folders = [...path.split(delimiter), dirname(process.execPath)].filter((each) => isAbsolute(each));
  for (const folder of new Set(folders.map((each) => resolve(each)))) {
    if (!isFolder(folder)) continue;
    for (const part of partsOfTool(folder, avoid)) add(part);
    // Skip the thousands of links in the system's own folders: most stay in the system.
    if (!/^(\/usr)?\/s?bin$/.test(folder)) for (const part of linkedParts(folder, avoid)) add(part);
  }
  const all = [...found];
  return all.filter((each) => !all.some((other) => other !== each && isInside(other, each)));
}

/** The folder of a tool, with the folders next to it that belong to the tool. */
function partsOfTool(folder: string, avoid: readonly string[]): readonly string[] {
  const isSafe = (path: string): boolean =>
    ![...neverWhole, ...avoid].some((each) => isInside(path, each) || isInside(realPathOf(path), each));
  return [...new Set([folder, realPathOf(folder)])].flatMap((each) => {
    const modules = modulesOf(each);
    if (modules !== undefined) return [modules];
    const prefix = dirname(each);
    const holdsPrograms = /^s?bin$/.test(basename(each));
    const isWhole = basename(each) === "shims" || (holdsPrograms && isDistribution(prefix));
    if (isWhole && isSafe(prefix)) return [prefix];
    const libraries = holdsPrograms
      ? ["lib", "lib64", "libexec", "include"].map((name) => join(prefix, name))
      : [];
    return [each, ...libraries].filter(isSafe);
  });
}

/** A search path can name any folder; a folder that contains one of these is not a folder of programs. */
const neverWhole = [
  "/etc",
  "/var",
  "/root",
  "/home",
  "/proc",
  "/dev",
  "/sys",
  "/run",
  "/tmp",
  "/srv",
  "/mnt",
];

/** The targets of a folder's links, such as the Node installation behind `/usr/local/bin/node`. */
function linkedParts(folder: string, avoid: readonly string[]): readonly string[] {
  return namesIn(folder).flatMap((name) => {
    const path = join(folder, name);
    if (!attempt(() => lstatSync(path).isSymbolicLink(), false)) return [];
    const target = realPathOf(path);
    if (target === path || isInside(folder, target) || isOfSystem(target)) return [];
    const modules = modulesOf(target);
    if (modules !== undefined) return [modules];
    if (/^s?bin$/.test(basename(dirname(target)))) return partsOfTool(dirname(target), avoid);
    return isFolder(target) ? [] : [target];
  });
}

/** The outermost `node_modules` folder of a path. */
function modulesOf(path: string): string | undefined {
  const names = path.split("/");
  const index = names.indexOf("node_modules");
  return index === -1 ? undefined : names.slice(0, index + 1).join("/");
}

/** Whether a folder holds one installed tool (Node, Python, Java, Go), recognized by a typical file. */
function isDistribution(prefix: string): boolean {
  return ["lib/node_modules", "include/node", "pyvenv.cfg", "release", "go.env"].some((mark) =>
    existsSync(join(prefix, mark)),
  );
}

function namesIn(folder: string): readonly string[] {
  return attempt(() => readdirSync(folder), []);
}

// Skip a folder that this user cannot enter.
function isFolder(path: string): boolean {
  return attempt(() => statSync(path).isDirectory(), false);
}

function realPathOf(path: string): string {
  return attempt(() => realpathSync(path), path);
}

/** Whether this process is root of the whole machine, for whom the kernel limits no number of processes. */
export function isMachineRoot(): boolean {
  if (process.getuid?.() !== 0) return false;
  return attempt(() => /^\s*0\s+0\s+4294967295\s*$/.test(readFileSync("/proc/self/uid_map", "utf8")), true);
}
