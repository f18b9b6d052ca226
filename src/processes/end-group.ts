import { randomUUID } from "node:crypto";
import { readdirSync, readFileSync, readlinkSync } from "node:fs";
import { setTimeout } from "node:timers/promises";
import { attempt } from "../base/attempt.ts";

/** An environment variable with the id of the command that a process descends from, to find processes that left the group. */
export const markName = "KIT_COMMAND_ID";

/** The id of this process, with which the marks of its commands begin. */
export const processMark: string = randomUUID();

export function createMark(): string {
  return `${processMark}.${randomUUID()}`;
}

/**
 * Ends at once what the commands of another process that has died have left running, and waits until it has ended; returns
 * whether there was anything. On Linux only, and not for a process that cleared its environment.
 */
export function endOrphans(ofProcess: string): boolean {
  const end = performance.now() + killMs;
  let hadOrphans = false;
  for (let emptyLooks = 0; emptyLooks < surelyEmptyLooks && performance.now() < end; ) {
    const orphans = listProcesses().filter((id) => hasMark(id, `${ofProcess}.`));
    for (const id of orphans) send(id, "SIGKILL");
    emptyLooks = orphans.length === 0 ? emptyLooks + 1 : 0;
    hadOrphans ||= orphans.length > 0;
    if (orphans.length > 0) Atomics.wait(sleeper, 0, 0, lookMs);
  }
  return hadOrphans;
}

const sleeper = new Int32Array(new SharedArrayBuffer(4));

/** While a process begins another program, the system shows no environment of it. A process can also start one after the look. */
const surelyEmptyLooks = 2;

/** Milliseconds between two looks at what still runs. */
const lookMs = 5;

/** Milliseconds to wait for the end of killed processes: one that waits for a disk ends late. */
const killMs = 2_000;

/** The processes of a command share its group, its mark, and a descriptor that they inherit. */
export interface CommandTrace {
  readonly group: number;
  readonly mark: string;
  /** The descriptor of `inheritedDescriptor`, as the system names it. */
  readonly inherited?: string | undefined;
}

/** A descriptor of a command that its processes inherit, also those that clear their environment. */
const inheritedDescriptor = 3;

/** The trace of a command that was just started with a pipe as descriptor 3. */
export function traceOf(group: number, mark: string): CommandTrace {
  return { group, mark, inherited: inheritedOf(group) };
}

function inheritedOf(id: number): string | undefined {
  try {
    const name = readlinkSync(`/proc/${id}/fd/${inheritedDescriptor}`);
    // Other kinds of files are open in processes of others as well.
    return /^(socket|pipe):\[/.test(name) ? name : undefined;
  } catch {
    return undefined;
  }
}

/** Milliseconds between SIGTERM and SIGKILL. */
export const graceMs = 500;

/** Sends a signal to every process of a group; returns false if no process of it is running. */
export function signalGroup(group: number, signal: NodeJS.Signals | 0): boolean {
  return send(process.platform === "win32" ? group : -group, signal);
}

/** Ends the remaining processes of a command with SIGTERM, then with SIGKILL. */
export async function endGroup(trace: CommandTrace): Promise<void> {
  const { group } = trace;
  const marked = findTraced(trace);
  for (const id of marked) send(id, "SIGTERM");
  if (!signalGroup(group, "SIGTERM") && marked.length === 0) return;
  const end = performance.now() + graceMs;
  while (hasProcesses(trace) && performance.now() < end) await setTimeout(lookMs);
  const killEnd = performance.now() + killMs;
  for (let emptyLooks = 0; emptyLooks < surelyEmptyLooks && performance.now() < killEnd; ) {
    signalGroup(group, "SIGKILL");
    for (const id of findTraced(trace)) send(id, "SIGKILL");
    const isEmpty = !hasProcesses(trace);
    emptyLooks = isEmpty ? emptyLooks + 1 : 0;
    if (!isEmpty) await setTimeout(lookMs);
  }
}

// An ended process belongs to its group until its parent reaps it, which in a container may never happen. On Linux such
// a process has no environment.
function hasProcesses(trace: CommandTrace): boolean {
  return process.platform === "linux" ? findTraced(trace).length > 0 : signalGroup(trace.group, 0);
}

/**
 * Finds the processes that a command started, also those that left its group (`setsid`, daemons), by the mark in their
 * environment or by the inherited descriptor. Works on Linux only, and not for a process that gave up both.
 */
function findTraced({ group, mark, inherited }: CommandTrace): number[] {
  const isTraced = (id: number): boolean =>
    hasMark(id, mark) || (inherited !== undefined && inheritedOf(id) === inherited);
  // Ids ascend, so a process with a lower id does not descend from the command. After ids wrap around, a process that
  // left its group at that moment may be missed.
  return listProcesses().filter((id) => id > group && isTraced(id));
}

function listProcesses(): number[] {
  if (process.platform !== "linux") return [];
  return attempt(() => readdirSync("/proc").map(Number).filter(Number.isInteger), []);
}

function hasMark(id: number, mark: string): boolean {
  // The process has ended, or belongs to another user.
  return attempt(() => readFileSync(`/proc/${id}/environ`).includes(`${markName}=${mark}`), false);
}

function send(id: number, signal: NodeJS.Signals | 0): boolean {
  try {
    process.kill(id, signal);
    return true;
  } catch {
    return false;
  }
}
