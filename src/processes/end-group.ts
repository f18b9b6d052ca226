import { readdirSync, readFileSync } from "node:fs";
import { setTimeout } from "node:timers/promises";

/** Names the command that a process descends from, so that one which left its group is found. */
export const markName = "KIT_COMMAND_ID";

/** How long processes have to end by themselves, in milliseconds. */
export const graceMs = 500;

/** Sends a signal to every process of a group; false when there is none, or only what has ended. */
export function signalGroup(group: number, signal: NodeJS.Signals | 0): boolean {
  return send(process.platform === "win32" ? group : -group, signal);
}

/** Ends what is left of a command: asks first, then makes sure. */
export async function endGroup(group: number, mark: string): Promise<void> {
  const marked = findMarked(group, mark);
  for (const id of marked) send(id, "SIGTERM");
  if (!signalGroup(group, "SIGTERM") && marked.length === 0) return;
  const end = performance.now() + graceMs;
  while (isLeft(group, mark) && performance.now() < end) await setTimeout(5);
  signalGroup(group, "SIGKILL");
  for (const id of findMarked(group, mark)) send(id, "SIGKILL");
}

// A process that has ended counts as one of its group until its parent reaps it, and in a container
// no process may ever reap it. Linux shows no environment of such a process.
function isLeft(group: number, mark: string): boolean {
  return process.platform === "linux" ? findMarked(group, mark).length > 0 : signalGroup(group, 0);
}

/**
 * The processes that a command started, also those which left its group (`setsid`, daemons): they
 * have its mark in their environment. Linux shows that; elsewhere they are not found, and neither is one
 * anywhere that also threw its environment away.
 */
function findMarked(group: number, mark: string): number[] {
  if (process.platform !== "linux") return [];
  // Ids ascend, so what has a lower one does not descend from the command. When ids have come round to
  // small ones again, a process that left its group in that moment may be missed.
  return listProcesses().filter((id) => id > group && hasMark(id, mark));
}

function listProcesses(): number[] {
  try {
    return readdirSync("/proc").map(Number).filter(Number.isInteger);
  } catch {
    return [];
  }
}

function hasMark(id: number, mark: string): boolean {
  try {
    return readFileSync(`/proc/${id}/environ`).includes(`${markName}=${mark}`);
  } catch {
    // It has ended meanwhile, or is not ours.
    return false;
  }
}

function send(id: number, signal: NodeJS.Signals | 0): boolean {
  try {
    process.kill(id, signal);
    return true;
  } catch {
    return false;
  }
}
