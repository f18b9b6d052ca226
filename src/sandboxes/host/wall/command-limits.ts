import { randomUUID } from "node:crypto";
import {
  accessSync,
  constants,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmdirSync,
  writeFileSync,
} from "node:fs";
import { release } from "node:os";
import { dirname, join } from "node:path";
import { setTimeout } from "node:timers/promises";
import type { CommandLimits } from "../../contract.ts";
import { isMachineRoot } from "./system-folders.ts";

export const defaultLimits: Required<CommandLimits> = { processes: 1_024, memoryMb: 4_096 };

/** A control group of one command: the kernel applies the limits to all its processes together. */
export interface ControlGroup {
  /** Arguments to put before a command so that it joins the group. */
  readonly prefix: readonly string[];
  close(): Promise<void>;
}

/**
 * Arguments to put before an isolated program to limit it. Without a control group, the memory limit applies
 * to each process. The process limit needs a kernel that counts per user namespace (Linux 5.14), and never applies to root.
 */
export function limitedShell(
  limits: Required<CommandLimits>,
  hasGroup: boolean,
  /** Paths where a mount must be: another process could have put a link in the way of a mount. */
  mounts: readonly string[] = [],
): readonly string[] {
  const { processes, memoryMb } = limits;
  const lines = mounts.length === 0 ? [] : [checkMounts];
  lines.push("ulimit -c 0");
  if (!hasGroup) lines.push(`ulimit -d ${memoryMb * 1024}`);
  if (countsProcesses())
    lines.push(`ulimit -u ${processes} 2>/dev/null || ulimit -p ${processes} 2>/dev/null`);
  const check = mounts.length === 0 ? [] : [...mounts, "--"];
  return ["/bin/sh", "-c", `${lines.join("\n")}\nexec "$@"`, "sh", ...check];
}

/** Written to stderr instead of running a command whose mounts are elsewhere. */
export const misplacedMount = "A mount is not in its place.\n";
const checkMounts = `seen=$(/bin/cat /proc/self/mountinfo 2>/dev/null || cat /proc/self/mountinfo)
while [ "$1" != -- ]; do
  case $seen in
    *" $1 r"[ow],*) shift ;;
    *) printf '${misplacedMount.trim()}\\n' >&2; exit 1 ;;
  esac
done
shift`;

/** Describes the limits that this machine enforces. */
export function describeLimits({ processes, memoryMb }: Required<CommandLimits>): string {
  const together = controllers().length > 0;
  const memory = `${memoryMb} MiB of memory${together ? "" : " each"}`;
  return together || countsProcesses() ? `at most ${processes} processes, ${memory}` : `at most ${memory}`;
}

let counts: boolean | undefined;
function countsProcesses(): boolean {
  const [major = 0, minor = 0] = release().split(".").map(Number);
  const isKnown = process.platform === "linux" && (major > 5 || (major === 5 && minor >= 14));
  counts ??= isKnown && !isMachineRoot();
  return counts;
}

/** A folder in which this process can create groups, and the files that hold their limits. */
interface Controller {
  readonly folder: string;
  readonly settings: (limits: Required<CommandLimits>) => Readonly<Record<string, number>>;
}

/** Creates a group; returns `undefined` if this process is not allowed to. */
export function openControlGroup(limits: Required<CommandLimits>): ControlGroup | undefined {
  const created: string[] = [];
  try {
    for (const { folder, settings } of controllers()) {
      const group = join(folder, `kit-${process.pid}-${randomUUID()}`);
      mkdirSync(group);
      created.push(group);
      for (const [file, value] of Object.entries(settings(limits)))
        writeFileSync(join(group, file), String(value));
    }
  } catch {
    for (const group of created) rmdirSync(group);
    // The system has withdrawn the permission; do not try again for the next command.
    usable = [];
    return undefined;
  }
  if (created.length === 0) return undefined;
  const enter = `while [ "$1" != -- ]; do echo 0 > "$1/cgroup.procs" || exit 125; shift; done; shift; exec "$@"`;
  return { prefix: ["/bin/sh", "-c", enter, "sh", ...created, "--"], close: () => removeGroups(created) };
}

/** The kernel removes a group only after the last of its processes has ended. */
async function removeGroups(groups: readonly string[]): Promise<void> {
  for (const group of groups) {
    for (let attempt = 0; attempt < 50; attempt += 1) {
      try {
        rmdirSync(group);
        break;
      } catch {
        if (!existsSync(group)) break;
        await setTimeout(attempt);
      }
    }
  }
}

let usable: readonly Controller[] | undefined;
function controllers(): readonly Controller[] {
  if (usable !== undefined) return usable;
  usable = findControllers();
  for (const { folder } of usable) removeAbandoned(folder);
  return usable;
}

/** Removes groups of kit processes that were killed; the kernel refuses to remove a group in use. */
function removeAbandoned(folder: string): void {
  for (const name of readdirSync(folder)) {
    const id = /^kit-(\d+)-/.exec(name)?.[1];
    if (id === undefined || existsSync(`/proc/${id}`)) continue;
    try {
      rmdirSync(join(folder, name));
    } catch {
      // Another process removed the group first, or still uses it.
    }
  }
}

const bytes = (megabytes: number): number => megabytes * 1024 * 1024;

function findControllers(): readonly Controller[] {
  try {
    const groupLines = readFileSync("/proc/self/cgroup", "utf8")
      .trim()
      .split("\n")
      .map((line) => line.split(":"));
    const pathOf = (name: string): string | undefined =>
      groupLines
        .find(([, names]) => names?.split(",").includes(name))
        ?.slice(2)
        .join(":");
    const [pids, memory] = [pathOf("pids"), pathOf("memory")];
    if (pids !== undefined && memory !== undefined) return firstGeneration(pids, memory);
    const unified = groupLines
      .find(([id, names]) => id === "0" && names === "")
      ?.slice(2)
      .join(":");
    return unified === undefined ? [] : secondGeneration(unified);
  } catch {
    return [];
  }
}

function firstGeneration(pids: string, memory: string): readonly Controller[] {
  const found: readonly Controller[] = [
    { folder: join("/sys/fs/cgroup/pids", pids), settings: ({ processes }) => ({ "pids.max": processes }) },
    {
      folder: join("/sys/fs/cgroup/memory", memory),
      settings: ({ memoryMb }) => ({ "memory.limit_in_bytes": bytes(memoryMb) }),
    },
  ];
  return found.every(({ folder }) => isWritable(folder)) ? found : [];
}

/** Uses the parent of this process's group, because a group with processes cannot limit child groups. */
function secondGeneration(groupPath: string): readonly Controller[] {
  const folder = join("/sys/fs/cgroup", groupPath === "/" ? groupPath : dirname(groupPath));
  const handed = readFileSync(join(folder, "cgroup.subtree_control"), "utf8").trim().split(" ");
  if (!["pids", "memory"].every((name) => handed.includes(name))) return [];
  if (![folder, join(folder, "cgroup.procs")].every(isWritable)) return [];
  return [
    {
      folder,
      settings: ({ processes, memoryMb }) => ({
        "pids.max": processes,
        "memory.max": bytes(memoryMb),
        "memory.swap.max": 0,
      }),
    },
  ];
}

function isWritable(path: string): boolean {
  try {
    accessSync(path, constants.W_OK);
    return true;
  } catch {
    return false;
  }
}
