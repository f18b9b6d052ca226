import type { KitEvent, SpecRunResult, SpecTaskProgress, Verdict } from "../../../../src/client/index.ts";

/** A task of a run of `kit.spec`, with what its earlier events said. */
export interface SpecTask extends SpecTaskProgress {
  /** The attempt that the verdict is about: while the next one is judged, still the last one. */
  readonly judged: number;
  /** The verdicts before the last one that did not close the task. */
  readonly earlier: readonly { readonly attempt: number; readonly verdict: Verdict }[];
}

export type SpecTasks = ReadonlyMap<string, SpecTask>;

/** The tasks after one more event of their run; the events of other runs change nothing. */
export function foldTask(tasks: SpecTasks, event: KitEvent): SpecTasks {
  if (event.type !== "log" || !isRecord(event.data)) return tasks;
  const { spec_task } = event.data;
  return isRecord(spec_task) ? withTask(tasks, spec_task as unknown as SpecTaskProgress) : tasks;
}

function withTask(tasks: SpecTasks, task: SpecTaskProgress): SpecTasks {
  return new Map(tasks).set(task.task, follow(tasks.get(task.task), task));
}

function follow(last: SpecTask | undefined, task: SpecTaskProgress): SpecTask {
  if (last === undefined) return { ...task, judged: task.attempt, earlier: [] };
  const { verdict, judged, earlier, diff } = last;
  // Two attempts can end with the same tree, but no two judgments take equally long.
  if (verdict?.tree === task.verdict?.tree && verdict?.duration_ms === task.verdict?.duration_ms)
    return { ...task, judged, earlier, ...(diff === undefined ? {} : { diff }) };
  const isOver = verdict === undefined || verdict.end === "closed";
  return {
    ...task,
    judged: task.attempt,
    earlier: isOver ? earlier : [...earlier, { attempt: judged, verdict }],
  };
}

/** A task as the journal of the run has it in its plan. */
export interface PlannedTask extends Pick<SpecTaskProgress, "title" | "path" | "line"> {
  readonly number: string;
  readonly criteria: readonly PlannedCriterion[];
}

export interface PlannedCriterion {
  readonly id: string;
  readonly text: string;
  readonly path: string;
  readonly line: number;
}

/** Reads the result of the first step of a run of `kit.spec`. */
export function readPlan(value: unknown): readonly PlannedTask[] {
  const tasks: unknown = isRecord(value) ? value.tasks : undefined;
  return Array.isArray(tasks) ? tasks.filter(isPlanned) : [];
}

function isPlanned(task: unknown): task is PlannedTask {
  return isRecord(task) && typeof task.number === "string" && Array.isArray(task.criteria);
}

/** All tasks of a run in the order of the spec, also those that have not begun. */
export function listTasks(
  begun: SpecTasks,
  { plan, result }: { readonly plan: readonly PlannedTask[]; readonly result: SpecRunResult | undefined },
): readonly SpecTask[] {
  const tasks = (result?.tasks ?? []).reduce(withTask, begun);
  const planned = new Map(plan.map((task) => [task.number, task]));
  return [...new Set([...planned.keys(), ...tasks.keys()])].flatMap(
    (number) => tasks.get(number) ?? toOpen(planned.get(number)) ?? [],
  );
}

function toOpen(planned: PlannedTask | undefined): SpecTask | undefined {
  if (planned === undefined) return undefined;
  const { number, title, path, line, criteria } = planned;
  const ids = criteria.map(({ id }) => id);
  const none = { state: "open", attempt: 0, judged: 0, earlier: [], cost: 0 } as const;
  return { task: number, title, path, line, criteria: ids, ...none };
}

function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
