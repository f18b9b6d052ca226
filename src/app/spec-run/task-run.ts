import { mkdir, rm } from "node:fs/promises";
import { type AgentDefinition, createAgent, mergeProfiles } from "../../agents/define/create-agent.ts";
import type { Agent } from "../../agents/harness.ts";
import type { Session } from "../../agents/session/session.ts";
import { KitError } from "../../base/kit-error.ts";
import { defined } from "../../base/record.ts";
import type { StepWork } from "../../engine/contract.ts";
import {
  decisionSignal,
  type SpecRunBody,
  type SpecTaskDecision,
  type SpecTaskProgress,
  type SpecTaskState,
} from "../../protocol/spec-run.ts";
import type { Verdict } from "../../protocol/verdict.ts";
import { local } from "../../sandboxes/local/local-sandbox.ts";
import type { SpecRegistry } from "../../specs/registry.ts";
import type { WorkflowContext } from "../../workflows/workflow-context.ts";
import { installedFolders } from "../verify/workplace.ts";
import { closeTask } from "./close-task.ts";
import { type JudgedTask, type JudgeParts, judgeTask, type KeptTests, keepTests } from "./judge-task.ts";
import { mergeWork } from "./merge-work.ts";
import type { PlannedTask } from "./plan-tasks.ts";
import type { Spending } from "./spending.ts";
import type { Identity, TaskBranch } from "./task-branch.ts";
import {
  conflictPrompt,
  deniedPrompt,
  reasonLines,
  refusalPrompt,
  taskPrompt,
  testsPrompt,
} from "./task-prompts.ts";
import { TaskWorkTree } from "./work-tree.ts";

interface NamedAgent {
  readonly name: string;
  readonly definition: AgentDefinition;
}

/** The parts that the tasks of a run share. */
export interface RunOfTasks {
  readonly ctx: WorkflowContext<SpecRunBody>;
  readonly feature: string;
  readonly branch: TaskBranch;
  readonly registry: SpecRegistry;
  readonly identity: Identity;
  readonly judge: JudgeParts;
  readonly coder: NamedAgent;
  readonly tester: NamedAgent | undefined;
  readonly attempts: number;
  readonly spending: Spending;
  readonly folderOf: (task: PlannedTask) => string;
}

/** The end of an attempt: the task is closed, or the agent gets a next prompt, or a person has said no. */
type Attempted =
  | { readonly end: "closed"; readonly commit: string }
  | { readonly end: "again"; readonly prompt: string }
  | { readonly end: "denied" };

/** The most characters of a diff that a person decides about. */
const mostOfDiff = 30_000;
/** How often the branch may move while a task is closed before the run gives up on it. */
const mostMerges = 20;

/** One task of a run: work tree, agent, verdict, commit. Each of its steps can be repeated after a crash. */
export class TaskRun {
  readonly #run: RunOfTasks;
  readonly #task: PlannedTask;
  readonly #workTree: TaskWorkTree;
  /** The commit that the work began with; another one after a merge. */
  #base = "";
  #attempt = 0;
  #tests: KeptTests | undefined;
  #verdict: Verdict | undefined;
  #session: string | undefined;
  #testing: Session | undefined;
  #working: Session | undefined;

  constructor(run: RunOfTasks, task: PlannedTask) {
    this.#run = run;
    this.#task = task;
    this.#workTree = new TaskWorkTree(run.branch, run.folderOf(task), run.ctx.signal);
  }

  /** Opens the agents of the task, before its first step. */
  async open(): Promise<void> {
    const { tester, coder } = this.#run;
    await mkdir(this.#workTree.root, { recursive: true });
    if (tester !== undefined && this.#task.criteria.length > 0)
      this.#testing = await this.#openAgent(tester, "tests");
    this.#working = await this.#openAgent(coder, "work");
  }

  async toEnd(): Promise<SpecTaskProgress> {
    const { attempts, spending } = this.#run;
    this.#base = await this.#step("begin", async () => {
      this.#note("working");
      // Commits that the user makes on HEAD meanwhile are no matter of a run that has begun.
      const base = (await this.#run.branch.tip()) ?? (await this.#run.branch.begin());
      await this.#workTree.create(base);
      return base;
    });
    if (this.#testing !== undefined) await this.#writeTests(this.#testing);
    const session = this.#working;
    if (session === undefined) throw new Error("The agents of a task are opened before its first step.");
    let prompt = taskPrompt(this.#task, { hasTests: this.#tests !== undefined });
    while (this.#attempt < attempts) {
      if (spending.left === 0)
        return await this.#leave("skipped", "The money of the run is spent (--max-cost).");
      this.#attempt += 1;
      const isOver = await this.#prompt(session, prompt);
      if (isOver !== undefined) return await this.#leave("skipped", isOver);
      const attempted = await this.#judgeAndClose();
      if (attempted.end === "closed") {
        await this.#step("tidy", async () => {
          await this.#workTree.remove();
          return true;
        });
        // A replay of the run has made the folder again.
        if (!this.#workTree.exists) await rm(this.#workTree.folder, { recursive: true, force: true });
        return this.#progress("closed", { commit: attempted.commit });
      }
      if (attempted.end === "denied") return await this.#leave("denied", "A person has not accepted it.");
      prompt = attempted.prompt;
    }
    const why = this.#verdict === undefined ? "" : reasonLines(this.#verdict.reasons);
    return await this.#leave("refused", why);
  }

  async #writeTests(session: Session): Promise<void> {
    const isOver = await this.#prompt(session, testsPrompt(this.#task));
    if (isOver !== undefined) return;
    this.#tests = await this.#step("keep tests", async () => {
      const kept = await keepTests(this.#run.judge, { workTree: this.#workTree, base: this.#base });
      return { tree: kept.tree, paths: kept.paths };
    });
  }

  /** Returns why the agent could not go on, if its money is spent. Any other error of a prompt ends the run. */
  async #prompt(session: Session, text: string): Promise<string | undefined> {
    const { spending } = this.#run;
    try {
      const { usage } = await session.prompt(text);
      spending.add(usage.cost.total);
      return undefined;
    } catch (error) {
      if (!(error instanceof KitError) || error.code !== "budget_exceeded") throw error;
      spending.add(null);
      return error.message;
    }
  }

  async #judgeAndClose(): Promise<Attempted> {
    for (let round = 1; round <= mostMerges; round += 1) {
      const judged = await this.#judge(round);
      const { verdict, undone } = judged;
      this.#verdict = verdict;
      let isApproved = false;
      if (verdict.end === "ask") {
        const { approved, comment } = await this.#ask(round);
        if (!approved)
          return comment === undefined || comment.trim() === ""
            ? { end: "denied" }
            : { end: "again", prompt: deniedPrompt(comment) };
        isApproved = true;
      } else if (verdict.end !== "closed") return { end: "again", prompt: refusalPrompt(verdict, undone) };
      const at = await this.#run.ctx.now();
      const closed = await this.#close(round, { tree: verdict.tree, at, isApproved });
      if ("commit" in closed) return { end: "closed", commit: closed.commit };
      if (closed.conflicts.length > 0)
        return { end: "again", prompt: conflictPrompt(this.#task, closed.conflicts) };
      // The commit would have another tree than the judged one now, so the next round judges the merge.
    }
    throw new KitError({
      code: "conflict",
      message: `The branch ${this.#run.branch.name} moved ${mostMerges} times while the task ${this.#task.number} was closed.`,
    });
  }

  async #judge(round: number): Promise<JudgedTask> {
    return await this.#step(`judge ${this.#attempt}.${round}`, async ({ signal }) => {
      this.#note("judging");
      const judged = await judgeTask(this.#run.judge, {
        workTree: this.#workTree,
        base: this.#base,
        task: this.#task,
        tests: this.#tests,
        signal,
      });
      this.#verdict = judged.verdict;
      this.#note(judged.verdict.end === "ask" || judged.verdict.end === "closed" ? "judging" : "working");
      return judged;
    });
  }

  /** Waits for a person, who sees the diff. */
  async #ask(round: number): Promise<SpecTaskDecision> {
    const { ctx, branch } = this.#run;
    const tree = this.#verdict?.tree ?? this.#base;
    await this.#step(`ask ${this.#attempt}.${round}`, async () => {
      const diff = await branch.diff(this.#base, tree, mostOfDiff);
      this.#note("waiting", { diff, work_tree: this.#workTree.folder });
      return true;
    });
    return await ctx.waitFor<SpecTaskDecision>(decisionSignal(this.#task.number, tree), { schema: decision });
  }

  async #close(
    round: number,
    { tree, at, isApproved }: { readonly tree: string; readonly at: number; readonly isApproved: boolean },
  ): Promise<{ readonly commit: string } | { readonly conflicts: readonly string[] }> {
    const { branch, registry, identity, feature, ctx } = this.#run;
    const task = this.#task;
    const closed = await this.#step(`close ${this.#attempt}.${round}`, async () => {
      const work = { task, feature, base: this.#base, tree, identity, at, runId: ctx.id, isApproved };
      const commit = await closeTask(branch, work, registry);
      if (commit !== undefined) {
        this.#note("closed", { commit });
        return { commit };
      }
      const head = (await branch.tip()) ?? (await branch.begin());
      const merged = await mergeWork(branch, { base: this.#base, tree, head });
      await this.#workTree.reset(head, merged.tree);
      return { head, conflicts: merged.conflicts };
    });
    if (closed.commit !== undefined) return { commit: closed.commit };
    this.#base = closed.head;
    return { conflicts: closed.conflicts };
  }

  /** An agent in the work tree, with the rights of its own profile there, and the right to write. */
  async #openAgent({ name, definition }: NamedAgent, purpose: string): Promise<Session> {
    const { ctx, branch, spending } = this.#run;
    const { left } = spending;
    const root = this.#workTree.root;
    const at = createAgent(async (context) =>
      mergeProfiles(await definition.describe(context), {
        sandbox: local({
          root,
          // Only kit's commits close a task: an agent's own could carry a tick that no verdict is about.
          readOnlyRepository: true,
          env: { PATH: await installedFolders({ top: branch.top, prefix: branch.prefix }) },
        }),
        allowWrite: true,
        ...(left === undefined ? {} : { budget: { maxCost: left } }),
      }),
    );
    const id = `${ctx.id}-${this.#task.number.replaceAll(/[^\w.-]+/g, "-")}`;
    // Under its own name, a request over HTTP could prompt it outside of the work tree.
    const agent: Agent = await ctx.init(at, { id, name: `kit.${name}` });
    // The journal tells the prompts of tasks at once apart by the names of their sessions.
    const session = `${purpose} ${this.#task.number}`;
    this.#session = `${agent.name}/${agent.id}/${session}`;
    return agent.session(session);
  }

  async #leave(state: SpecTaskState, reason: string): Promise<SpecTaskProgress> {
    return await this.#step("leave", async () => {
      const left = { reason, work_tree: this.#workTree.folder };
      this.#note(state, left);
      return this.#progress(state, left);
    });
  }

  #step<Value>(name: string, work: StepWork<Value>): Promise<Value> {
    return this.#run.ctx.step(`${this.#task.number} ${name}`, work);
  }

  /** Tells those who watch the run. Steps call it, so a replay tells nothing again. */
  #note(state: SpecTaskState, more: Partial<SpecTaskProgress> = {}): void {
    const { ctx, feature } = this.#run;
    const spec_task = this.#progress(state, more);
    ctx.log.info(`${feature} ${this.#task.number}: ${state}`, { spec_task });
  }

  #progress(state: SpecTaskState, more: Partial<SpecTaskProgress> = {}): SpecTaskProgress {
    const { number, title, path, line, criteria } = this.#task;
    return {
      task: number,
      title,
      path,
      line,
      criteria: criteria.map(({ id }) => id),
      state,
      attempt: this.#attempt,
      cost: this.#run.spending.total,
      ...defined({ session: this.#session, verdict: this.#verdict }),
      ...(state === "working" ? { work_tree: this.#workTree.folder } : {}),
      ...more,
    };
  }
}

const decision = {
  type: "object",
  properties: {
    approved: { type: "boolean" },
    comment: {
      type: "string",
      maxLength: 10_000,
      description: "Why not: the agent gets it as its next prompt.",
    },
  },
  required: ["approved"],
  additionalProperties: false,
} as const;
