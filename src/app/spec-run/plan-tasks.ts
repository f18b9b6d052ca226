import { KitError } from "../../base/kit-error.ts";
import { quoteName } from "../../base/names.ts";
import type { SpecBlock } from "../../protocol/spec-block.ts";
import { type CriteriaIndex, indexCriteria } from "../../specs/coverage/criteria-index.ts";
import { featurePathOf, listCriteria } from "../../specs/coverage/list-criteria.ts";
import { criteriaOfTask } from "../../specs/coverage/test-references.ts";

/** A task that a run can do. */
export interface PlannedTask {
  readonly number: string;
  readonly title: string;
  /** The whole text of the task. */
  readonly text: string;
  /** Relative to the project root. */
  readonly path: string;
  readonly line: number;
  readonly criteria: readonly PlannedCriterion[];
  /** Whether the spec says that it can be done beside others. */
  readonly isParallel: boolean;
}

export interface PlannedCriterion {
  /** The key that a test names: `checkout#1.4`. */
  readonly id: string;
  readonly text: string;
  readonly path: string;
  readonly line: number;
}

export interface TaskChoice {
  readonly feature: string;
  /** By number or id; default: every open task that is not optional. */
  readonly tasks?: readonly string[] | undefined;
}

/** The open tasks of a feature, in the order of its files; a task with subtasks is done when they are. */
export function planTasks(
  blocks: Iterable<SpecBlock>,
  { feature, tasks: choice }: TaskChoice,
): readonly PlannedTask[] {
  const all = [...blocks];
  const index = indexCriteria(listCriteria(all));
  const tasks = tasksOf(all, index, feature);
  const isOpen = (block: SpecBlock): boolean => block.metadata.status !== "done";
  if (choice === undefined) {
    return tasks
      .filter((block) => isOpen(block) && block.metadata.optional !== true && !hasSubtasks(tasks, block))
      .map((block) => toPlanned(index, block));
  }
  const chosen = choice.map((name) => {
    const found = tasks.filter((block) => block.id === name || numberOf(block) === name);
    const [only, another] = found;
    if (only === undefined)
      throw unknown(`The feature ${quoteName(feature)} has no task ${quoteName(name)}.`, tasks);
    if (another !== undefined)
      throw unknown(`Several tasks are called ${quoteName(name)}: name it by its id.`, found);
    if (!isOpen(only)) throw unknown(`The task ${quoteName(name)} is done already.`, tasks.filter(isOpen));
    if (hasSubtasks(tasks, only))
      throw unknown(
        `The task ${quoteName(name)} is done when its subtasks are: name these.`,
        tasks.filter(isOpen),
      );
    return only;
  });
  return tasks.filter((block) => chosen.includes(block)).map((block) => toPlanned(index, block));
}

/** The number of a task in its file, else its title. */
export function numberOf({ metadata, title }: Pick<SpecBlock, "metadata" | "title">): string {
  const number = metadata.number ?? metadata.task;
  return typeof number === "string" && number !== "" ? number : title.slice(0, 80);
}

/** Whether a task is part of another one: `1.2` of `1`. */
export function isSubtask(number: string, of: string): boolean {
  return number.startsWith(`${of}.`);
}

function hasSubtasks(tasks: readonly SpecBlock[], block: SpecBlock): boolean {
  return tasks.some((other) => other.path === block.path && isSubtask(numberOf(other), numberOf(block)));
}

function tasksOf(blocks: readonly SpecBlock[], index: CriteriaIndex, feature: string): readonly SpecBlock[] {
  const tasks = blocks.filter(({ spec_type, lifecycle }) => spec_type === "task" && lifecycle !== "obsolete");
  const known = index.featureByName.get(feature.toLowerCase());
  const path = known == null ? undefined : index.features[known]?.path;
  const nameOf = (block: SpecBlock): string => featurePathOf(block.path).split("/").at(-1) ?? "";
  const inFeature = tasks.filter((block) =>
    path === undefined
      ? nameOf(block).toLowerCase() === feature.toLowerCase()
      : featurePathOf(block.path) === path,
  );
  const folders = new Set(inFeature.map((block) => featurePathOf(block.path)));
  if (folders.size === 1) return inFeature;
  const names = [...new Set(tasks.filter(({ metadata }) => metadata.status !== "done").map(nameOf))];
  throw new KitError({
    code: "invalid_request",
    message:
      folders.size === 0
        ? `No feature ${quoteName(feature)} has tasks in the last commit.`
        : `Several features are called ${quoteName(feature)}: ${[...folders].join(", ")}.`,
    hint:
      names.length === 0
        ? "Tasks are boxes of a list, such as those of .kiro/specs/<feature>/tasks.md, and the spec must be committed."
        : `These have open tasks: ${names.slice(0, 20).join(", ")}. A new spec must be committed first.`,
  });
}

function toPlanned(index: CriteriaIndex, block: SpecBlock): PlannedTask {
  const criteria = new Set(criteriaOfTask(index, block).map(({ criterion }) => index.criteria[criterion]));
  return {
    number: numberOf(block),
    title: block.title,
    text: block.content,
    path: block.path,
    line: block.metadata.source?.start_line ?? 1,
    criteria: [...criteria].flatMap((criterion) =>
      criterion === undefined
        ? []
        : [{ id: criterion.id, text: criterion.text, path: criterion.path, line: criterion.line }],
    ),
    isParallel: block.metadata.parallel === true,
  };
}

function unknown(message: string, tasks: readonly SpecBlock[]): KitError {
  const list = tasks.slice(0, 20).map((block) => `${numberOf(block)} (${block.id})`);
  return new KitError({
    code: "invalid_request",
    message,
    hint: list.length === 0 ? "No task is open." : `Its tasks: ${list.join(", ")}.`,
  });
}
