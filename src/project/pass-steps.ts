import { setImmediate as nextTurn } from "node:timers/promises";

/** A place where long work can be paused: nothing to wait for, or something that must come first. */
export type PassStep = { readonly wait: Promise<unknown> } | { readonly sleepMs: number } | undefined;

/** Work that is written once and run in two ways. */
export type PassSteps<Result> = Generator<PassStep, Result>;

/** How long other work of the process waits at most, in milliseconds. */
const turnMs = 12;

/** Runs the work in turns, so that the process stays responsive; stops with the signal's reason. */
export async function runInTurns<Result>(steps: PassSteps<Result>, signal?: AbortSignal): Promise<Result> {
  let turnStart = performance.now();
  let input: IteratorResult<PassStep, Result>;
  for (input = steps.next(); !input.done; input = steps.next()) {
    const step = input.value;
    if (step === undefined && performance.now() - turnStart < turnMs) continue;
    try {
      if (step === undefined) await nextTurn();
      else if ("wait" in step) await step.wait;
      else await new Promise((resolve) => setTimeout(resolve, step.sleepMs));
      signal?.throwIfAborted();
    } catch (error) {
      steps.throw(error);
      throw error;
    }
    turnStart = performance.now();
  }
  return input.value;
}

/** Runs the work to its end at once. Only for work whose steps never wait for a promise. */
export function runAtOnce<Result>(steps: PassSteps<Result>): Result {
  let input = steps.next();
  for (; !input.done; input = steps.next()) {
    if (input.value === undefined) continue;
    if ("wait" in input.value) throw new Error("This work cannot be done at once.");
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, input.value.sleepMs);
  }
  return input.value;
}
