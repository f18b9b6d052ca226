import { readdirSync, readFileSync } from "node:fs";

/** Ticks of the system's clock per second, on Linux. */
const ticksPerSecond = 100;

/** Milliseconds of processor time of processes so far; that of a parent includes its ended children. Linux only. */
export function processorMs(pids: readonly number[]): number {
  return pids.reduce((sum, pid) => sum + ticksOf(pid), 0) * (1_000 / ticksPerSecond);
}

/** A process and its descendants. */
export function withChildren(pid: number): readonly number[] {
  const parents = new Map<number, number>();
  for (const name of readdirSync("/proc")) {
    if (!/^\d+$/.test(name)) continue;
    const parent = Number(fieldsOf(Number(name))?.[1]);
    if (!Number.isNaN(parent)) parents.set(Number(name), parent);
  }
  const family = [pid];
  for (const one of family) for (const [child, parent] of parents) if (parent === one) family.push(child);
  return family;
}

function ticksOf(pid: number): number {
  const fields = fieldsOf(pid);
  if (fields === undefined) return 0;
  return [11, 12, 13, 14].reduce((sum, index) => sum + Number(fields[index]), 0);
}

/** The fields after a process's name: its state, its parent, …; 11 to 14 are its processor time and that of its children. */
function fieldsOf(pid: number): readonly string[] | undefined {
  try {
    return readFileSync(`/proc/${pid}/stat`, "utf8").split(") ")[1]?.split(" ");
  } catch {
    return undefined;
  }
}
