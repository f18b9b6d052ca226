import { homedir } from "node:os";
import { dirname } from "node:path";
import { isInside } from "../workspace-path.ts";
import { isOfSystem, type Visible } from "./system-folders.ts";

/** The home folder of isolated commands. Not this user's home, because tools installed there may be visible. */
export const innerHome: string = homedir() === "/home/kit" ? "/home/sandbox" : "/home/kit";
/** The socket of the proxy to allowed hosts, as isolated commands see it. */
export const innerSocket = "/run/kit/proxy.sock";

/** A file or folder of this machine that a command sees at a path. */
export interface Mount {
  readonly source: string;
  readonly path: string;
  readonly write: boolean;
}

/** A read-only folder of the workspace with writable ones below it. */
export interface CachedFolder {
  readonly path: string;
  readonly mounts: readonly Mount[];
}

/** The paths that one command can read and write. All are absolute and without links. */
export interface WallPlan {
  readonly root: string;
  /** The command's working folder: the root or a folder below it. */
  readonly folder: string;
  readonly write: boolean;
  readonly system: readonly Visible[];
  /** Visible paths of tools, outside the workspace. They may be links. */
  readonly tools: readonly string[];
  /** Other visible paths outside the workspace: the repository of a linked worktree. */
  readonly seen: readonly string[];
  /** Mounts that cover parts of the workspace and of `seen`: the repository. */
  readonly mounts: readonly Mount[];
  /** Paths below the writable ones that are read-only. */
  readonly protectedPaths: readonly string[];
  /** Folders among these paths, with writable ones below them. */
  readonly cached: readonly CachedFolder[];
  /** Folders of kit, which appear empty. */
  readonly hidden: readonly string[];
  /** Files of the workspace that appear as `empty`. */
  readonly hiddenFiles: readonly string[];
  readonly empty: string;
  /** The folder mounted as `/etc`. */
  readonly etc: string;
  /** The sandbox's own folders on the host. */
  readonly ownFolders: { readonly home: string; readonly temporary: string };
  /** The socket of the proxy, for a command that may reach hosts. */
  readonly socket: string | undefined;
  readonly memoryBytes: number;
  /** The mounts of this machine that bubblewrap must not write to when it makes the last mount points. */
  readonly sealedMounts: readonly string[];
  /** Opens a path without following links, and returns the number that the descriptor has in bubblewrap's process. */
  readonly hold: (path: string) => number;
}

/** Options of every command: new namespaces, no capabilities, and it dies with kit. */
export const enclosure: readonly string[] = [
  ...["--unshare-user-try", "--unshare-ipc", "--unshare-pid", "--unshare-net", "--unshare-uts"],
  ...["--unshare-cgroup-try", "--hostname", "sandbox"],
  ...["--new-session", "--die-with-parent", "--cap-drop", "ALL"],
];

/**
 * The arguments of bubblewrap for a plan. Later mounts cover earlier ones: the workspace covers the system, and
 * read-only and hidden paths cover the workspace.
 */
export function toBubblewrap(plan: WallPlan): readonly string[] {
  const { root, ownFolders, hold } = plan;
  // Bubblewrap refuses to go on if the path no longer leads to the file of the descriptor.
  const readOnly = (path: string): readonly string[] => ["--ro-bind-fd", String(hold(path)), path];
  const changeable = (path: string): readonly string[] => ["--bind-fd", String(hold(path)), path];
  const toMount = ({ source, path, write }: Mount): readonly string[] => [
    write ? "--bind-fd" : "--ro-bind-fd",
    String(hold(source)),
    path,
  ];
  const outside = (path: string): boolean => !isInside(root, path);
  const inside = (path: string): boolean => isInside(root, path);
  const veiled = plan.hidden.filter((path) => outside(path) && isOfSystem(path));
  return [
    ...enclosure,
    ...["--ro-bind", plan.etc, "/etc"],
    ...plan.system.flatMap(({ path, linksTo }) =>
      linksTo === undefined ? ["--ro-bind", path, path] : ["--symlink", linksTo, path],
    ),
    // A command that runs as root could otherwise set the program that the kernel starts after a crash.
    ...["--proc", "/proc", "--remount-ro", "/proc"],
    ...["--dev", "/dev", "--size", String(plan.memoryBytes), "--tmpfs", "/dev/shm", "--remount-ro", "/dev"],
    ...temporaryOf(plan),
    ...["--symlink", "/tmp", "/var/tmp", "--bind", ownFolders.home, innerHome],
    // kit's own folder, if it lies in a system folder.
    ...veiled.flatMap((path) => ["--tmpfs", path]),
    // In its home, a command could put a link where the next command has a mount.
    ...plan.tools
      .filter((path) => outside(path) && !isInside(innerHome, path))
      .flatMap((path) => ["--ro-bind", path, path]),
    ...plan.seen.flatMap(readOnly),
    ...plan.mounts.filter(({ path }) => outside(path)).flatMap(toMount),
    ...plan.protectedPaths.filter(outside).flatMap(readOnly),
    ...(plan.write ? changeable(root) : readOnly(root)),
    ...plan.mounts.filter(({ path }) => inside(path)).flatMap(toMount),
    ...heldFolders(root, [
      ...plan.protectedPaths.filter(inside),
      ...plan.hiddenFiles,
      ...plan.hidden.filter(inside),
    ]).flatMap(plan.write ? changeable : readOnly),
    ...plan.cached.flatMap(({ path, mounts }) => [...readOnly(path), ...mounts.flatMap(toMount)]),
    ...sealArguments(plan.sealedMounts),
    ...plan.protectedPaths
      .filter((path) => inside(path) && !plan.cached.some((folder) => folder.path === path))
      .flatMap(readOnly),
    ...plan.hiddenFiles.flatMap((path) => ["--ro-bind-fd", String(hold(plan.empty)), path]),
    ...plan.hidden.filter(inside).flatMap((path) => ["--tmpfs", path, "--remount-ro", path]),
    ...(plan.socket === undefined ? [] : ["--ro-bind", plan.socket, innerSocket]),
    ...["/", ...veiled].flatMap((path) => ["--remount-ro", path]),
    ...["--chdir", plan.folder],
  ];
}

/**
 * Usually the sandbox's own folder, which keeps its files for the next command. If something is mounted below
 * /tmp, a command could put a link in the way of the next command's mounts, so each command gets a new /tmp.
 */
function temporaryOf({ root, tools, seen, ownFolders, memoryBytes }: WallPlan): readonly string[] {
  const isMounted = [root, ...tools, ...seen].some((path) => isInside("/tmp", path));
  return isMounted
    ? ["--perms", "1777", "--size", String(memoryBytes), "--tmpfs", "/tmp"]
    : ["--bind", ownFolders.temporary, "/tmp"];
}

/**
 * The folders between the root and the read-only paths, outer folders first. Each becomes a mount, which cannot be
 * renamed: otherwise a command could replace it by a folder with other contents.
 */
function heldFolders(root: string, protectedPaths: readonly string[]): readonly string[] {
  const folders = new Set<string>();
  for (const path of protectedPaths) {
    for (let folder = dirname(path); folder.length > root.length; folder = dirname(folder))
      folders.add(folder);
  }
  return [...folders]
    .filter((folder) => !protectedPaths.includes(folder))
    .sort((left, right) => left.length - right.length);
}

/**
 * Makes mounts of the machine read-only for bubblewrap itself, which sees them in `/oldroot` while it sets up. It creates missing
 * mount points, and would create a file elsewhere for a link that another process has just put there.
 */
export function sealArguments(mounts: readonly string[]): readonly string[] {
  return mounts.flatMap((path) => ["--remount-ro", `/../oldroot${path}`]);
}

/** Whether commands of this workspace can be isolated: not if it contains system folders. */
export function canHold(root: string): boolean {
  const needed = ["/usr", "/etc", "/proc", "/dev", "/sys", "/run", "/tmp", "/home", "/var"];
  return !needed.some((path) => isInside(root, path)) && !isInside(innerHome, root);
}

/** The mount points in the workspace, as `/proc/self/mountinfo` spells them. */
export function mountPoints(root: string, args: readonly string[]): readonly string[] {
  const points = args.flatMap((option, index) => {
    if (/^--(ro-)?bind-fd$/.test(option)) return args[index + 2] ?? [];
    return option === "--tmpfs" ? (args[index + 1] ?? []) : [];
  });
  const inside = points.filter((path) => isInside(root, path));
  return [...new Set(inside)].map((path) =>
    path.replace(/[ \t\n\\]/g, (sign) => `\\${sign.charCodeAt(0).toString(8).padStart(3, "0")}`),
  );
}
