import type { RunContext, StepWork } from "../../../contract.ts";

/** The flow of a run of `run-process.ts`. */
export interface FlowPayload {
  readonly steps: number;
  /** After how many steps the process kills itself. */
  readonly dies?: "at once" | "one step further each time";
}

/** A number of steps, one after the other; each fifth step runs in parallel with another step and a sleep. */
export async function followFlow(
  context: RunContext,
  steps: number,
  work: (number: number) => StepWork<number>,
): Promise<readonly number[]> {
  const results: number[] = [];
  for (let step = 0; step < steps; step += 1) {
    const sides = step % 5 === 4 ? [context.step(`side ${step}`, work(step)), context.sleep(2)] : [];
    const [value] = await Promise.all([context.step(`step ${step}`, work(step)), ...sides]);
    results.push(value);
  }
  return results;
}
