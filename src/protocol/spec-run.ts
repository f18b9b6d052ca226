import { z } from "zod";
import { isRecord } from "../base/record.ts";
import type { KitEvent } from "./event.ts";
import type { Infer } from "./fields.ts";
import { verdictSchema } from "./verdict.ts";

/** The built-in workflow that works through the tasks of a spec. */
export const specRunWorkflow = "kit.spec";

/**
 * Where a task of a spec run stands: `refused` after its last attempt, `denied` by a person, `skipped` because the run's money is
 * spent. Only `closed` changes the spec.
 */
export const specTaskStates = [
  "open",
  "working",
  "judging",
  "waiting",
  "closed",
  "refused",
  "denied",
  "skipped",
] as const;
export type SpecTaskState = (typeof specTaskStates)[number];

/** The payload of a run of `kit.spec`. */
export const specRunBodySchema = z
  .strictObject({
    feature: z.string().min(1).max(200).meta({
      description: "The label of the feature, such as checkout, or the name of an OpenSpec change.",
    }),
    tasks: z
      .array(z.string().min(1).max(200))
      .min(1)
      .max(1_000)
      .optional()
      .meta({ description: "Only these, by number or id; default: every open task that is not optional." }),
    agent: z.string().min(1).max(200).optional().meta({
      description: "The agent that does the tasks; default: specs.run.agent, else the default agent.",
    }),
    tests_by: z
      .string()
      .min(1)
      .max(200)
      .optional()
      .meta({ description: "The agent that writes the tests first; then the other one cannot change them." }),
    attempts: z.int().min(1).max(20).optional().meta({ description: "Per task; default 3." }),
    parallel: z
      .int()
      .min(1)
      .max(8)
      .optional()
      .meta({ description: "How many tasks that the spec marks as parallel are done at once; default 1." }),
    max_cost: z
      .number()
      .min(0)
      .optional()
      .meta({ description: "US dollars of all model calls together; default: no limit." }),
  })
  .meta({ id: "SpecRunBody" });
export interface SpecRunBody extends Infer<typeof specRunBodySchema> {}

/** The state of one task of a spec run: the data of its `log` events, under `spec_task`, and an entry of its result. */
export const specTaskProgressSchema = z
  .object({
    /** The number of the task in its file, such as `1.2` or `T012`. */
    task: z.string(),
    title: z.string(),
    path: z.string().meta({ description: "The file of the task, relative to the project root." }),
    line: z.int(),
    criteria: z.array(z.string()),
    state: z.enum(specTaskStates),
    attempt: z.int().meta({ description: "From 1; 0 before the first." }),
    session: z
      .string()
      .optional()
      .meta({ description: "The session of the agent: `agent/instance/session`." }),
    verdict: verdictSchema.optional().meta({ description: "The last one." }),
    diff: z.string().optional().meta({ description: "What a person decides about; cut if it is long." }),
    commit: z.string().optional().meta({ description: "The commit of a closed task." }),
    reason: z.string().optional().meta({ description: "Why the task was not closed." }),
    work_tree: z.string().optional().meta({
      description:
        "The folder with the work on a task that is worked on, waits for a person, or was not closed.",
    }),
    cost: z.number().nullable().meta({ description: "US dollars so far; null if a price is unknown." }),
  })
  .meta({ id: "SpecTaskProgress" });
export interface SpecTaskProgress extends Infer<typeof specTaskProgressSchema> {}

/** Returns the progress of a task in an event of its run; undefined for other events. */
export function specTaskOf(event: KitEvent): SpecTaskProgress | undefined {
  if (event.type !== "log" || !isRecord(event.data) || event.data.spec_task === undefined) return undefined;
  return specTaskProgressSchema.safeParse(event.data.spec_task).data;
}

/** The result of a run of `kit.spec`. */
export const specRunResultSchema = z
  .object({
    feature: z.string(),
    branch: z.string().meta({ description: "Has one commit per closed task." }),
    base: z.string().meta({ description: "The commit that the run began with." }),
    head: z.string(),
    tasks: z.array(specTaskProgressSchema),
    cost: z.number().nullable(),
  })
  .meta({ id: "SpecRunResult" });
export interface SpecRunResult extends Infer<typeof specRunResultSchema> {}

/** The answer of a person about a task that waits, as the payload of the signal `decisionSignal`. */
export const specTaskDecisionSchema = z
  .strictObject({
    approved: z.boolean(),
    comment: z
      .string()
      .max(10_000)
      .optional()
      .meta({ description: "Why not: the agent gets it as its next prompt." }),
  })
  .meta({ id: "SpecTaskDecision" });
export interface SpecTaskDecision extends Infer<typeof specTaskDecisionSchema> {}

/** The name of the signal that decides about a task: it names the judged tree, so an answer cannot count for another one. */
export function decisionSignal(task: string, tree: string): string {
  return `approve ${task} ${tree.slice(0, 12)}`;
}
