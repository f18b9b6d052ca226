import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import type { AgentDefinition } from "../../agents/define/create-agent.ts";
import { KitError } from "../../base/kit-error.ts";
import { openProject } from "../../project/open-project.ts";
import type { Project } from "../../project/project.ts";
import type { ProjectConfig } from "../../project/project-config.ts";
import type { SpecRunBody, SpecRunResult, SpecTaskProgress } from "../../protocol/spec-run.ts";
import type { IsolationOptions } from "../../sandboxes/contract.ts";
import { createSpecRegistry } from "../../specs/registry.ts";
import type { WorkflowContext } from "../../workflows/workflow-context.ts";
import { stateFolder } from "../state-folder.ts";
import { Trees } from "../verify/trees.ts";
import { type PlannedTask, planTasks } from "./plan-tasks.ts";
import { Spending } from "./spending.ts";
import { type Identity, TaskBranch, toRefName } from "./task-branch.ts";
import { type RunOfTasks, TaskRun } from "./task-run.ts";

/** The parts that the runs of a project share. */
export interface SpecRunParts {
  readonly project: Pick<Project, "root" | "specs">;
  readonly config: ProjectConfig;
  readonly isolation: IsolationOptions;
  /** Returns the definition of an agent. Throws `agent_not_found`. */
  agent(name: string): AgentDefinition;
  /** Returns the id of another open run of the feature that began before this one. */
  otherRun(feature: string, runId: string): Promise<string | undefined>;
}

const defaultAttempts = 3;

/** Works through the open tasks of a feature. Its steps can be repeated, so a run that is killed anywhere goes on. */
export async function runSpec(
  parts: SpecRunParts,
  ctx: WorkflowContext<SpecRunBody>,
): Promise<SpecRunResult> {
  const { feature, parallel: most = parts.config.specs?.run?.parallel ?? 1 } = ctx.payload;
  const plan = await ctx.step("plan", ({ signal }) => begin(parts, { ctx, signal }));
  const branch = await TaskBranch.open(parts.project.root, feature, ctx.signal);
  const run = toRun(parts, { ctx, branch, identity: plan.identity });
  const tasks: SpecTaskProgress[] = [];
  for (const group of groupsOf(plan.tasks, most)) {
    const works = group.map((task) => new TaskRun(run, task));
    // Opening an agent is no step and takes some time: between steps of tasks at once, it would change their order in a replay.
    for (const work of works) await work.open();
    tasks.push(...(await Promise.all(works.map((work) => work.toEnd()))));
  }
  const head = await ctx.step("head", async () => (await branch.tip()) ?? plan.base);
  return { feature, branch: branch.name, base: plan.base, head, tasks, cost: run.spending.total };
}

interface Plan {
  readonly base: string;
  readonly identity: Identity;
  readonly tasks: readonly PlannedTask[];
}

async function begin(
  parts: SpecRunParts,
  { ctx, signal }: { readonly ctx: WorkflowContext<SpecRunBody>; readonly signal: AbortSignal },
): Promise<Plan> {
  const { feature, tasks } = ctx.payload;
  const other = await parts.otherRun(feature, ctx.id);
  if (other !== undefined) {
    throw new KitError({
      code: "conflict",
      message: `Another run works on ${feature} already: ${other}.`,
      hint: `kit runs show ${other} says how far it is; kit runs cancel ${other} ends it.`,
    });
  }
  const branch = await TaskBranch.open(parts.project.root, feature, signal);
  const planned = await planAt(parts, await branch.peek(), { feature, tasks, signal });
  if (planned.length === 0) ctx.log.info(`${feature} has no open task.`);
  const base = await branch.begin();
  return { base, identity: await branch.identity(), tasks: planned };
}

/** The tasks as a commit has them: only its spec files are checked out. */
async function planAt(
  { project: own, config }: SpecRunParts,
  commit: string,
  { feature, tasks, signal }: Pick<SpecRunBody, "feature" | "tasks"> & { readonly signal: AbortSignal },
): Promise<readonly PlannedTask[]> {
  await using trees = await Trees.open(own.root, { signal });
  const { prefix } = trees;
  const specs = [...(await trees.list(commit))].filter(
    ([path]) => path.startsWith(prefix) && own.specs.frameworkOf(path.slice(prefix.length)) !== undefined,
  );
  const folder = await trees.emptyFolder();
  await trees.checkOut(new Map(specs), folder);
  const root = join(folder, prefix);
  await mkdir(root, { recursive: true });
  const project = await openProject({ root, indexFile: ":memory:", readOnly: true, config, signal });
  try {
    return planTasks(project.specs.all(), { feature, tasks });
  } finally {
    await project.close();
  }
}

function toRun(
  { project, config, isolation, agent }: SpecRunParts,
  { ctx, branch, identity }: Pick<RunOfTasks, "ctx" | "branch" | "identity">,
): RunOfTasks {
  const { feature, max_cost, ...body } = ctx.payload;
  const { run: settings = {}, adapters = [], custom = [] } = config.specs ?? {};
  const coder = body.agent ?? settings.agent;
  const tester = body.tests_by ?? settings.tests_by;
  const folders = join(stateFolder(project.root), "work");
  const name = toRefName(feature).replaceAll("/", "-");
  return {
    ctx,
    feature,
    branch,
    registry: createSpecRegistry({ adapters, custom }),
    identity,
    judge: { branch, config, isolation, specs: project.specs },
    coder: { name: coder ?? "default", definition: agent(coder ?? "default") },
    tester: tester === undefined ? undefined : { name: tester, definition: agent(tester) },
    attempts: body.attempts ?? settings.attempts ?? defaultAttempts,
    spending: new Spending(max_cost ?? settings.max_cost),
    folderOf: ({ number }) => join(folders, `${name}.${toRefName(number).replaceAll("/", "-")}`),
  };
}

/** Tasks that the spec marks as parallel and that follow each other are done at once, `most` at a time. */
function groupsOf(tasks: readonly PlannedTask[], most: number): readonly (readonly PlannedTask[])[] {
  const groups: PlannedTask[][] = [];
  for (const task of tasks) {
    const last = groups.at(-1);
    if (
      last !== undefined &&
      last.length < most &&
      task.isParallel &&
      last.every((other) => other.isParallel)
    )
      last.push(task);
    else groups.push([task]);
  }
  return groups;
}
