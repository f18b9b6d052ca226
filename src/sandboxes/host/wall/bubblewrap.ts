import { homedir } from "node:os";
import { dirname } from "node:path";
import { isInside } from "../workspace-path.ts";
import { isOfSystem, type Visible } from "./system-folders.ts";

/** Where a command has its home, within the wall: not where this user has one, in which tools may be seen. */
export const innerHome: string = homedir() === "/home/kit" ? "/home/sandbox" : "/home/kit";
/** Where a command finds the way to the hosts that it may reach. */
export const innerSocket = "/run/kit/proxy.sock";

/** The paths that one command can read and write. All are absolute and without links. */
export interface WallPlan {
  readonly root: string;
  /** Where the command starts: the root or a folder below it. */
  readonly folder: string;
  readonly write: boolean;
  readonly system: readonly Visible[];
  /** Outside of the workspace: tools, and the repository of a linked worktree. */
  readonly seen: readonly string[];
  /** The writable ones of these paths. */
  readonly changed: readonly string[];
  /** Paths below the writable ones that are read-only. */
  readonly kept: readonly string[];
  /** Folders that nothing is seen of: those of kit. */
  readonly hidden: readonly string[];
  /** The /etc of commands. */
  readonly etc: string;
  /** Folders of the sandbox's own on the host. */
  readonly own: { readonly home: string; readonly temporary: string };
  /** The socket of the proxy, for a command that may reach hosts. */
  readonly socket: string | undefined;
  readonly memoryBytes: number;
}

/** Options of every command: namespaces of its own, no capabilities, and an end together with kit. */
export const enclosure: readonly string[] = [
  ...["--unshare-user-try", "--unshare-ipc", "--unshare-pid", "--unshare-net", "--unshare-uts"],
  ...["--unshare-cgroup-try", "--hostname", "sandbox"],
  ...["--new-session", "--die-with-parent", "--cap-drop", "ALL"],
];

/**
 * The arguments of bubblewrap for a plan. Later mounts lie on earlier ones: the workspace on the system, what
 * is kept and hidden on the workspace.
 */
export function toBubblewrap(plan: WallPlan): readonly string[] {
  const { root, own } = plan;
  const outside = (path: string): boolean => !isInside(root, path);
  const inside = (path: string): boolean => isInside(root, path);
  const veiled = plan.hidden.filter((path) => outside(path) && isOfSystem(path));
  return [
    ...enclosure,
    ...["--ro-bind", plan.etc, "/etc"],
    ...plan.system.flatMap(({ path, linksTo }) =>
      linksTo === undefined ? readOnly(path) : ["--symlink", linksTo, path],
    ),
    // As the superuser of the machine, a command could otherwise set what the kernel starts after a crash.
    ...["--proc", "/proc", "--remount-ro", "/proc"],
    ...["--dev", "/dev", "--size", String(plan.memoryBytes), "--tmpfs", "/dev/shm", "--remount-ro", "/dev"],
    ...temporaryOf(plan),
    ...["--symlink", "/tmp", "/var/tmp", "--bind", own.home, innerHome],
    // The folder of kit's own files, when it lies in a folder of the system.
    ...veiled.flatMap((path) => ["--tmpfs", path]),
    // Below its home a command could put a link in the way of the next one's mounts.
    ...plan.seen.filter((path) => outside(path) && !isInside(innerHome, path)).flatMap(readOnly),
    ...plan.changed.flatMap(changeable),
    ...plan.kept.filter(outside).flatMap(readOnly),
    ...(plan.write ? changeable(root) : readOnly(root)),
    ...heldFolders(root, plan.kept.filter(inside)).flatMap(changeable),
    ...plan.kept.filter(inside).flatMap(readOnly),
    ...plan.hidden.filter(inside).flatMap((path) => ["--tmpfs", path, "--remount-ro", path]),
    ...(plan.socket === undefined ? [] : ["--ro-bind", plan.socket, innerSocket]),
    ...["/", ...veiled].flatMap((path) => ["--remount-ro", path]),
    ...["--chdir", plan.folder],
  ];
}

/**
 * A folder of the sandbox's own, that the next command finds as this one left it. Where something is mounted
 * below /tmp, a command could put a link in its way for the next one: it has a /tmp for itself then.
 */
function temporaryOf({ root, seen, own, memoryBytes }: WallPlan): readonly string[] {
  const isMounted = [root, ...seen].some((path) => isInside("/tmp", path));
  return isMounted
    ? ["--perms", "1777", "--size", String(memoryBytes), "--tmpfs", "/tmp"]
    : ["--bind", own.temporary, "/tmp"];
}

/**
 * The folders between the root and what is kept, the outer ones first. Each becomes a mount, which cannot be
 * renamed: else a command puts another folder in its place, with what it likes in it.
 */
function heldFolders(root: string, kept: readonly string[]): readonly string[] {
  const folders = new Set<string>();
  for (const path of kept) {
    for (let folder = dirname(path); folder.length > root.length; folder = dirname(folder))
      folders.add(folder);
  }
  return [...folders]
    .filter((folder) => !kept.includes(folder))
    .sort((left, right) => left.length - right.length);
}

/** Whether a workspace can lie within a wall: one that holds the system's folders cannot. */
export function canHold(root: string): boolean {
  const needed = ["/usr", "/etc", "/proc", "/dev", "/sys", "/run", "/tmp", "/home", "/var"];
  return !needed.some((path) => isInside(root, path)) && !isInside(innerHome, root);
}

const readOnly = (path: string): readonly string[] => ["--ro-bind", path, path];
const changeable = (path: string): readonly string[] => ["--bind", path, path];
