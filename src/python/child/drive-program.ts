import type { MontyComplete, MontyNameLookup, MontySnapshot } from "@pydantic/monty";
import type { PythonExceptionInfo } from "../python-error.ts";
import { callHost } from "./call-host.ts";
import type { DataclassTypes } from "./dataclass-calls.ts";
import type { Machine } from "./machine.ts";
import type { Output } from "./output.ts";
import { RunFailed } from "./run-failed.ts";
import { monotonicMs } from "./watchdog-state.ts";

export type Progress = MontySnapshot | MontyNameLookup | MontyComplete;

export interface Driving {
  readonly machine: Machine;
  readonly types: DataclassTypes;
  readonly output: Output;
  /** Milliseconds that Monty allows; infinite where it has no such limit. */
  readonly limitMs: number;
  /** Milliseconds after which the process ends itself, and the bytes at which it does. */
  readonly deadlineMs: number;
  readonly memoryCeiling: number;
}

/** Answers what a program asks until it ends. Time spent waiting for the host is not the program's. */
export function driveProgram(start: () => Progress, driving: Driving): MontyComplete {
  const { limitMs, machine, output, types } = driving;
  const { MontyComplete: Complete, MontyNameLookup: NameLookup, MontySnapshot: Snapshot } = machine.monty;
  let executedMs = 0;
  let waitedMs = 0;
  let since = monotonicMs();
  let progress = start();
  while (!(progress instanceof Complete)) {
    if (progress instanceof NameLookup) {
      // Without a value, Python raises its NameError.
      progress = progress.resume(progress.variableName === "__name__" ? { value: "__main__" } : undefined);
      continue;
    }
    output.flush();
    const paused = monotonicMs();
    executedMs += paused - since;
    if (executedMs > limitMs) throw new RunFailed(timeExceeded(limitMs));
    machine.watchdog.rest();
    const answer = callHost(progress, { link: machine.link, types });
    since = monotonicMs();
    waitedMs += since - paused;
    machine.watchdog.watch(driving.deadlineMs - executedMs, driving.memoryCeiling);
    // Monty's clock runs on while it waits; a snapshot that is loaded again starts it anew.
    if (waitedMs > limitMs / 20) {
      progress = Snapshot.load(progress.dump(), { printCallback: output.callback });
      waitedMs = 0;
    }
    progress = progress.resume(answer);
  }
  return progress;
}

function timeExceeded(limitMs: number): PythonExceptionInfo {
  return { type: "TimeoutError", message: `time limit exceeded: ${limitMs / 1_000}s` };
}
