import type { MontyComplete, MontyNameLookup, MontySnapshot } from "@pydantic/monty";
import type { AnswerMessage, HostMessage } from "../process/messages.ts";
import { callHost, toAnswer } from "./call-host.ts";
import type { DataclassTypes } from "./dataclass-calls.ts";
import type { Machine } from "./machine.ts";
import type { Output } from "./printed-output.ts";
import { RunFailed } from "./run-failed.ts";
import { monotonicMs } from "./watchdog-state.ts";

export type Progress = MontySnapshot | MontyNameLookup | MontyComplete;

export interface Driving {
  readonly machine: Machine;
  readonly types: DataclassTypes;
  readonly output: Output;
  /** Monty's time limit in milliseconds; infinite if there is none. */
  readonly limitMs: number;
  /** The milliseconds and bytes at which the watchdog ends the process. */
  readonly deadlineMs: number;
  readonly memoryCeiling: number;
  /** Milliseconds of computing in other processes before. */
  readonly executedMs: number;
}

/** A larger snapshot is not sent, so the program stays in its process while it waits for the host. */
const maxParkedBytes = 1024 * 1024;
/** A process with more memory does not even create a snapshot. */
const maxMemoryToPark = 192 * 1024 * 1024;

/**
 * Answers a program's calls until it ends. Time spent waiting for the host does not count. Returns `undefined` if the
 * program was parked while it waited, so that the process is free for another one.
 */
export function driveProgram(start: () => Progress, driving: Driving): MontyComplete | undefined {
  const { limitMs, machine, output, types } = driving;
  const { MontyComplete: Complete, MontyNameLookup: NameLookup, MontySnapshot: Snapshot } = machine.monty;
  let { executedMs } = driving;
  let waitedMs = 0;
  let since = monotonicMs();
  let progress = start();
  while (!(progress instanceof Complete)) {
    if (progress instanceof NameLookup) {
      // Without a value, Python raises a NameError.
      progress = progress.resume(progress.variableName === "__name__" ? { value: "__main__" } : undefined);
      continue;
    }
    output.flush();
    const paused = monotonicMs();
    executedMs += paused - since;
    if (executedMs > limitMs)
      throw new RunFailed({ type: "TimeoutError", message: `time limit exceeded: ${limitMs / 1_000}s` });
    machine.watchdog.rest();
    const called = callHost(progress, { link: machine.link, types });
    const answer = called === "asked" ? awaitAnswer(progress, { ...driving, executedMs }) : called;
    if (answer === undefined) return undefined;
    since = monotonicMs();
    waitedMs += since - paused;
    machine.watchdog.watch(driving.deadlineMs - executedMs, driving.memoryCeiling);
    // Monty's clock keeps running while it waits; loading the snapshot again restarts it.
    if (waitedMs > limitMs / 20) {
      progress = Snapshot.load(progress.dump(), { printCallback: output.callback });
      waitedMs = 0;
    }
    progress = progress.resume(answer);
  }
  return progress;
}

/** Waits for kit's answer. Returns `undefined` if kit parked the program. */
function awaitAnswer(snapshot: MontySnapshot, driving: Driving): ReturnType<typeof toAnswer> | undefined {
  const { machine, output, types } = driving;
  for (;;) {
    const frame = machine.link.read();
    if (frame === undefined) process.exit(0);
    const message = frame.header as HostMessage;
    if (message.type !== "park") return toAnswer(message as AnswerMessage, types);
    const bytes = bytesToPark(snapshot, driving);
    if (bytes === undefined) {
      machine.link.send({ type: "stays" });
      continue;
    }
    const progress = { executed_ms: driving.executedMs, printed_chars: output.printed };
    machine.link.send({ type: "parked", progress }, bytes);
    return undefined;
  }
}

function bytesToPark(snapshot: MontySnapshot, driving: Driving): Uint8Array | undefined {
  if (process.memoryUsage.rss() > maxMemoryToPark) return undefined;
  const { watchdog } = driving.machine;
  watchdog.watch(driving.deadlineMs, driving.memoryCeiling);
  const bytes = snapshot.dump();
  watchdog.rest();
  return bytes.length > maxParkedBytes ? undefined : bytes;
}
