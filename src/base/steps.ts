/** Long work in short steps: the caller decides whether other work comes between two of them. */
export type Steps<Result> = Generator<undefined, Result>;

/** Does all steps one after the other. */
export function atOnce<Result>(steps: Steps<Result>): Result {
  for (let step = steps.next(); ; step = steps.next()) if (step.done === true) return step.value;
}

/** Pauses after each step; a pause that is not due yet returns at once. */
export async function inTurns<Result>(
  steps: Steps<Result>,
  pause: () => Promise<void> | undefined,
): Promise<Result> {
  for (let step = steps.next(); ; step = steps.next()) {
    if (step.done === true) return step.value;
    const waiting = pause();
    if (waiting !== undefined) await waiting;
  }
}
