import { randomUUID } from "node:crypto";
import { readdirSync, readFileSync } from "node:fs";
import { setTimeout } from "node:timers/promises";

/** An environment variable with the id of the command that a process descends from, to find processes that left the group. */
export const markName = "KIT_COMMAND_ID";

/** The id of this process, with which the marks of its commands begin. */
export const processMark: string = randomUUID();

export function createMark(): string {
  return `${processMark}.${randomUUID()}`;
}

/**
 * Ends at once what the commands of another process that has died have left running; returns whether there was anything.
 * On Linux only, and not for a process that cleared its environment.
 */
export function endOrphans(ofProcess: string): boolean {
  const orphans = findMarked(0, `${ofProcess}.`);
  for (const id of orphans) send(id, "SIGKILL");
  return orphans.length > 0;
}

/** Milliseconds between SIGTERM and SIGKILL. */
export const graceMs = 500;

/** Sends a signal to every process of a group; returns false if no process of it is running. */
export function signalGroup(group: number, signal: NodeJS.Signals | 0): boolean {
  return send(process.platform === "win32" ? group : -group, signal);
}

/** Ends the remaining processes of a command with SIGTERM, then with SIGKILL. */
export async function endGroup(group: number, mark: string): Promise<void> {
  const marked = findMarked(group, mark);
  for (const id of marked) send(id, "SIGTERM");
  if (!signalGroup(group, "SIGTERM") && marked.length === 0) return;
  const end = performance.now() + graceMs;
  while (hasProcesses(group, mark) && performance.now() < end) await setTimeout(5);
  signalGroup(group, "SIGKILL");
  for (const id of findMarked(group, mark)) send(id, "SIGKILL");
}

// An ended process belongs to its group until its parent reaps it, which in a container may never happen. On Linux such
// a process has no environment.
function hasProcesses(group: number, mark: string): boolean {
  return process.platform === "linux" ? findMarked(group, mark).length > 0 : signalGroup(group, 0);
}

/**
 * Finds the processes that a command started, also those that left its group (`setsid`, daemons), by the mark in their
 * environment. Works on Linux only, and not for a process that cleared its environment.
 */
function findMarked(group: number, mark: string): number[] {
  if (process.platform !== "linux") return [];
  // Ids ascend, so a process with a lower id does not descend from the command. After ids wrap around, a process that
  // left its group at that moment may be missed.
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
    // The process has ended, or belongs to another user.
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
