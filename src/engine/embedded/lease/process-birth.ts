import { readFileSync, readlinkSync } from "node:fs";
import { hostname } from "node:os";

/**
 * Tells a process from every other that has, or will have, its number: machine, boot, namespace, and
 * where the system says so the time of its start. Undefined for a process that is gone.
 */
export function processBirth(pid: number): string | undefined {
  if (!isAlive(pid)) return undefined;
  return [home(), startTime(pid)].join(" ");
}

/**
 * Whether the process is known to be gone. Only one of the same machine, boot and namespace can be
 * known; of any other nothing can be said.
 */
export function isGone(pid: number, birth: string): boolean {
  const known = home();
  if (birth !== known && !birth.startsWith(`${known} `)) return false;
  return processBirth(pid) !== birth;
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    // One that may not be signalled is alive.
    return error instanceof Error && "code" in error && error.code === "EPERM";
  }
}

/** Where numbers of processes mean the same: this boot of this machine, and on Linux this container. */
function home(): string {
  try {
    const boot = readFileSync("/proc/sys/kernel/random/boot_id", "utf8").trim();
    return `${boot}/${readlinkSync("/proc/self/ns/pid")}`;
  } catch {
    return hostname();
  }
}

/** Field 22 of proc(5) stat, in clock ticks since boot; a zombie counts as gone. Empty where there is no /proc. */
function startTime(pid: number): string {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
    // The second field is the command in brackets, and may hold anything.
    const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
    return fields[0] === "Z" ? "zombie" : (fields[19] ?? "");
  } catch {
    return "";
  }
}
