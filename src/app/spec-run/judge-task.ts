import { KitError } from "../../base/kit-error.ts";
import { openProject } from "../../project/open-project.ts";
import type { Project } from "../../project/project.ts";
import type { ProjectConfig } from "../../project/project-config.ts";
import type { Verdict } from "../../protocol/verdict.ts";
import type { IsolationOptions } from "../../sandboxes/contract.ts";
import { isOfTests } from "../verify/runners.ts";
import { verifyWorkTree } from "../verify/verify-work-tree.ts";
import type { PlannedTask } from "./plan-tasks.ts";
import type { TaskBranch } from "./task-branch.ts";
import type { TaskWorkTree } from "./work-tree.ts";

/** The parts that the judge of all tasks of a run shares. */
export interface JudgeParts {
  readonly branch: TaskBranch;
  /** The part of the configuration that selects files, with `specs.verify`. */
  readonly config: ProjectConfig;
  readonly isolation: IsolationOptions;
  readonly specs: Pick<Project["specs"], "frameworkOf">;
}

export interface JudgedTask {
  readonly verdict: Verdict;
  /** Files that the agent may not change, which are as before again; from the top of the repository. */
  readonly undone: readonly string[];
}

/** The tests that another agent has written: only these files are protected. */
export interface KeptTests {
  readonly tree: string;
  /** From the top of the repository. */
  readonly paths: readonly string[];
}

/** The work of an agent on a task. */
interface WorkOnTask {
  readonly workTree: TaskWorkTree;
  /** The commit that the work began with. */
  readonly base: string;
  readonly tests?: KeptTests | undefined;
}

/** How often kit looks again at a work tree that changes while it is judged. */
const mostAttempts = 3;

/**
 * Judges the work on a task, after undoing changes of files that are not the agent's. The judged tree is in the repository then.
 *
 * Throws `conflict` if the work tree keeps changing while it is judged.
 */
export async function judgeTask(
  parts: JudgeParts,
  { task, signal, ...work }: WorkOnTask & { readonly task: PlannedTask; readonly signal: AbortSignal },
): Promise<JudgedTask> {
  const { branch, config, isolation } = parts;
  const { workTree, base } = work;
  for (let attempt = 1; attempt <= mostAttempts; attempt += 1) {
    const undone = await undoForeign(parts, work);
    const project = await openProject({
      root: workTree.root,
      indexFile: ":memory:",
      readOnly: true,
      config,
      signal,
    });
    try {
      const verdict = await verifyWorkTree(project, {
        criteria: task.criteria.map(({ id }) => id),
        base,
        packagesOf: branch.top,
        settings: config.specs?.verify,
        checks: config.guidelines?.check,
        isolation,
        signal,
      });
      if ((await workTree.snapshot()) === verdict.tree) return { verdict, undone };
    } finally {
      await project.close();
    }
  }
  throw new KitError({
    code: "conflict",
    message: `The files of the work tree changed each time while kit judged them: ${workTree.folder}.`,
    hint: "A process that the agent has started may still be writing there: end it, and begin again.",
  });
}

/** Gives specs, kit's own files and the tests of another agent back what they had. */
async function undoForeign(
  parts: JudgeParts,
  { workTree, base, tests }: WorkOnTask,
): Promise<readonly string[]> {
  const undone = await workTree.restore(base, (path) => isForeign(parts, path));
  if (tests === undefined) return undone;
  const kept = new Set(tests.paths);
  return [...undone, ...(await workTree.restore(tests.tree, (path) => kept.has(path)))];
}

/** Keeps the tests that an agent has written, and undoes its other changes. */
export async function keepTests(
  parts: JudgeParts,
  { workTree, base }: WorkOnTask,
): Promise<KeptTests & { readonly undone: readonly string[] }> {
  const { prefix } = parts.branch;
  const undone = await workTree.restore(
    base,
    (path) => !path.startsWith(prefix) || isForeign(parts, path) || !isOfTests(path.slice(prefix.length)),
  );
  const tree = await workTree.snapshot();
  return { tree, paths: await workTree.changed(base, tree), undone };
}

const ownFiles = /^(?:\.kit\/|kit\.toml$|kit\.config\.\w+$)/;

/** Specs and kit's configuration decide what the judge looks at, so no agent changes them in a task. */
function isForeign({ branch, specs }: JudgeParts, path: string): boolean {
  if (!path.startsWith(branch.prefix)) return false;
  const inProject = path.slice(branch.prefix.length);
  return ownFiles.test(inProject) || specs.frameworkOf(inProject) !== undefined;
}
