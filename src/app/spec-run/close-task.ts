import { KitError } from "../../base/kit-error.ts";
import { tickTask } from "../../specs/model/tick-task.ts";
import { createSpecRegistry, type SpecRegistry } from "../../specs/registry.ts";
import { Trees } from "../verify/trees.ts";
import { isSubtask, numberOf, type PlannedTask } from "./plan-tasks.ts";
import type { Identity, TaskBranch } from "./task-branch.ts";

export interface ClosedWork {
  readonly task: Pick<PlannedTask, "number" | "title" | "path" | "criteria">;
  readonly feature: string;
  /** The commit that the judged tree began with. */
  readonly base: string;
  /** The judged tree. */
  readonly tree: string;
  readonly identity: Identity;
  /** In ms since 1970. */
  readonly at: number;
  readonly runId: string;
  /** Whether a person has approved what the verdict could not decide. */
  readonly isApproved: boolean;
}

/**
 * Commits exactly the judged tree, with the box of the task ticked by kit, and those of the tasks above whose last subtask it was. Returns
 * undefined if the branch has another tip meanwhile. The same again is the same commit, so a crash in between loses nothing.
 */
export async function closeTask(
  branch: TaskBranch,
  work: ClosedWork,
  registry: SpecRegistry = createSpecRegistry(),
): Promise<string | undefined> {
  const { task, feature, base, identity, at, runId, isApproved } = work;
  const tree = await tickIn(branch, work, registry);
  const trailers = [
    `Kit-Task: ${feature}/${task.number}`,
    ...(task.criteria.length === 0 ? [] : [`Kit-Criteria: ${task.criteria.map(({ id }) => id).join(", ")}`]),
    ...(isApproved ? ["Kit-Approved: by a person"] : []),
    `Kit-Run: ${runId}`,
  ];
  const message = `${task.title}\n\n${trailers.join("\n")}\n`;
  return await branch.commit({ tree, parent: base, message, identity, at });
}

/** The tree with ticks; no other byte of it differs. */
async function tickIn(
  branch: TaskBranch,
  { task, tree }: ClosedWork,
  registry: SpecRegistry,
): Promise<string> {
  await using trees = await Trees.open(branch.top, { keepsObjects: true });
  const path = `${branch.prefix}${task.path}`;
  const listing = await trees.list(tree);
  const [mode, object] = listing.get(path)?.split(" ") ?? [];
  const text = (await trees.texts(listing, [path])).get(path);
  if (mode === undefined || text === undefined) throw gone(task);
  // A file in another encoding would be written back in UTF-8.
  if ((await trees.hash(text)) !== object) {
    throw new KitError({
      code: "invalid_request",
      message: `${task.path} is not UTF-8, so kit cannot tick a box in it without changing other bytes.`,
      hint: "Save the file as UTF-8 and commit it.",
    });
  }
  const ticked = tickTasks(text, task, registry);
  return await trees.replace(tree, new Map([[path, `${mode} ${await trees.hash(ticked)}`]]));
}

/** Ticks a task in the text of its file, and each task above that has no open subtask left. */
export function tickTasks(
  text: string,
  task: Pick<PlannedTask, "number" | "path">,
  registry: SpecRegistry,
): string {
  const drafts = registry.adapterFor(task.path)?.parse({ path: task.path, text }).drafts ?? [];
  const tasks = drafts
    .filter(({ spec_type }) => spec_type === "task")
    .map((draft) => ({
      number: numberOf(draft),
      isDone: draft.metadata.status === "done",
      isOptional: draft.metadata.optional === true,
      line: draft.span.start_line,
      framework: draft.framework,
    }));
  const own = tasks.find(({ number }) => number === task.number);
  if (own === undefined) throw gone(task);
  const isOver = (other: (typeof tasks)[number]): boolean =>
    other === own || other.isDone || other.isOptional || isSubtask(own.number, other.number);
  const above = tasks.filter(
    (other) =>
      !other.isDone &&
      isSubtask(own.number, other.number) &&
      tasks.every((each) => !isSubtask(each.number, other.number) || isOver(each)),
  );
  // Each tick replaces one character, so lines stay where they are.
  return [own, ...above].reduce((ticked, each) => tickTask(ticked, each), text);
}

function gone({ number, path }: Pick<PlannedTask, "number" | "path">): KitError {
  return new KitError({
    code: "conflict",
    message: `The task ${number} is not in ${path} any more.`,
    hint: "The spec was changed on the branch meanwhile. Begin again: the run reads the tasks anew.",
  });
}
