import type { Engine, RunContext, StepWork } from "../../../contract.ts";

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

/** Runs that wait for other runs, for a signal, or for a person. */
export type Member = "grandparent" | "parent" | "kid" | "signalled parent" | "signalled" | "person";

const childOf: Partial<Record<Member, Member>> = {
  grandparent: "parent",
  parent: "kid",
  "signalled parent": "signalled",
};

/** Does the part of a member of the family. `step` is the work of a kid, `decide` the wait for a person. */
export async function followFamily(
  engine: Pick<Engine, "startRun">,
  { context, member }: { readonly context: RunContext; readonly member: Member },
  { step, decide }: { readonly step: StepWork<unknown>; readonly decide: () => Promise<unknown> },
): Promise<unknown> {
  const child = childOf[member];
  if (child !== undefined) {
    const run_id = await context.step("start", async ({ idempotencyKey }) => {
      const request = { workflow: "family", payload: child, parent_run_id: context.id };
      return (await engine.startRun({ ...request, idempotency_key: idempotencyKey })).run_id;
    });
    return await context.stepAfter("result", async () => run_id, { run_id });
  }
  if (member === "signalled") return await context.waitFor("go");
  if (member === "kid") return await context.step("work", step);
  return await context.step("ask", async () => {
    const takeSlot = context.releaseSlot();
    await decide();
    takeSlot();
    return "decided";
  });
}
