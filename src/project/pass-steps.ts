import { setImmediate as nextTurn } from "node:timers/promises";

/** A place where long work can be paused: nothing to wait for, or something that must come first. */
export type PassStep = { readonly wait: Promise<unknown> } | { readonly sleepMs: number } | undefined;

/** Work that is written once and run in two ways: in turns, or at once. */
export type PassSteps<Result> = Generator<PassStep, Result>;

/** How long other work of the process waits at most, in milliseconds. */
const turnMs = 12;

/** Runs the work in turns, so that the process stays responsive. Stops with the signal's reason. */
export async function runInTurns<Result>(steps: PassSteps<Result>, signal?: AbortSignal): Promise<Result> {
  let turnStart = performance.now();
  let isStopping = false;
  let current = steps.next();
  while (!current.done) {
    const step = current.value;
    if (step === undefined && performance.now() - turnStart < turnMs) {
      current = steps.next();
      continue;
    }
    try {
      await pause(step);
      if (!isStopping) signal?.throwIfAborted();
    } catch (error) {
      // The work cleans up after itself, which may take some more steps.
      isStopping = true;
      current = steps.throw(error);
      continue;
    }
    turnStart = performance.now();
    current = steps.next();
  }
  return current.value;
}

async function pause(step: PassStep): Promise<void> {
  if (step === undefined) await nextTurn();
  else if ("wait" in step) await step.wait;
  else await new Promise((resolve) => setTimeout(resolve, step.sleepMs));
}

/** Runs the work to its end at once. Only for work whose steps never wait for a promise. */
export function runAtOnce<Result>(steps: PassSteps<Result>): Result {
  let current = steps.next();
  while (!current.done) {
    if (current.value !== undefined) {
      if ("wait" in current.value) throw new Error("This work cannot be done at once.");
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, current.value.sleepMs);
    }
    current = steps.next();
  }
  return current.value;
}
