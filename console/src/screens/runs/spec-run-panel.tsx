import { type ReactNode, useId, useState } from "react";
import type { RunRecord, RunWait, SpecRunResult, SpecTaskProgress } from "../../../../src/client/index.ts";
import { isReadOnly } from "../../api/server.ts";
import { useChange } from "../../api/use-server.ts";
import { Button } from "../../ui/button.tsx";
import { Command } from "../../ui/command.tsx";
import { Patch } from "../../ui/diff.tsx";
import { Icon } from "../../ui/icons.tsx";
import { Panel } from "../../ui/page.tsx";
import { SourceLink } from "../../ui/source-link.tsx";
import { Status, type Tone } from "../../ui/status.tsx";
import { formatCost, visible } from "../../ui/text.ts";
import { listTasks, type PlannedTask, type SpecTask, type SpecTasks } from "./spec-tasks.ts";
import { readQuestion } from "./task-question.ts";
import { usePlan } from "./use-plan.ts";
import { Criteria, Part, Reasons, VerdictView } from "./verdict-view.tsx";

type State = SpecTaskProgress["state"];

const states: Readonly<Record<State, { readonly label: string; readonly tone: Tone }>> = {
  open: { label: "open", tone: "none" },
  working: { label: "working", tone: "busy" },
  judging: { label: "judging", tone: "busy" },
  waiting: { label: "waiting for you", tone: "warn" },
  closed: { label: "closed", tone: "good" },
  refused: { label: "refused", tone: "bad" },
  denied: { label: "not accepted", tone: "bad" },
  skipped: { label: "skipped", tone: "none" },
};

interface SpecRunPanelProps {
  readonly run: RunRecord;
  /** The tasks that have begun, from the events of the run. */
  readonly begun: SpecTasks;
  readonly isOver: boolean;
}

/** The tasks of a run of `kit.spec`: how far each is, why, and the decisions that a person owes. */
export function SpecRunPanel({ run, begun, isOver }: SpecRunPanelProps): ReactNode {
  const plan = usePlan(run.run_id, isOver || begun.size > 0);
  const result = run.status === "completed" ? (run.result as SpecRunResult) : undefined;
  const tasks = listTasks(begun, { plan: plan ?? [], result });
  const feature = featureOf(run);
  const branch = result?.branch ?? (isPlainName(feature) ? `kit/${feature}` : undefined);
  const closed = tasks.filter(({ commit }) => commit !== undefined).length;
  return (
    <Panel
      title={
        <>
          Tasks of <bdi className="foreign">{visible(feature)}</bdi>
        </>
      }
      count={tasks.length}
    >
      <p role="status" className="border-line border-b px-4 py-2 text-sm text-soft">
        {tasks.length === 0 ? describeNone(run, isOver) : summary(tasks, isOver)}
        {tasks.length === 0 ? null : ` · ${formatCost(result === undefined ? costOf(tasks) : result.cost)}`}
      </p>
      <ol className="divide-y divide-line">
        {tasks.map((task) => (
          <li key={task.task}>
            <TaskRow
              task={task}
              planned={plan?.find(({ number }) => number === task.task)}
              runId={run.run_id}
              wait={task.state === "waiting" ? waitOf(task, run) : undefined}
              isOver={isOver}
            />
          </li>
        ))}
      </ol>
      {closed === 0 || branch === undefined ? null : (
        <div className="flex flex-wrap items-center gap-x-3 gap-y-1 border-line border-t px-4 py-2 text-sm text-soft">
          {`${closed} ${closed === 1 ? "commit" : "commits"} on the branch ${branch}, to take over with`}
          <Command text={`git merge ${branch}`} />
        </div>
      )}
    </Panel>
  );
}

function featureOf({ payload }: RunRecord): string {
  const feature: unknown =
    typeof payload === "object" && payload !== null ? Reflect.get(payload, "feature") : undefined;
  return typeof feature === "string" ? feature : "";
}

/** Whether a name is the same as the name of a branch, and safe in a command. */
function isPlainName(name: string): boolean {
  return name.length <= 80 && /^[\p{L}\p{N}_]+(?:-+[\p{L}\p{N}_]+)*$/u.test(name);
}

/** The wait of the run that asks about the judged tree of a task. */
function waitOf({ task, verdict }: SpecTask, run: RunRecord): RunWait | undefined {
  return run.waiting_for?.find(({ signal }) => {
    const question = readQuestion(run, signal);
    return question?.task === task && verdict?.tree.startsWith(question.tree) === true;
  });
}

/** The waits of a run that no row of its tasks shows. */
export function otherWaits(run: RunRecord, tasks: SpecTasks): readonly RunWait[] {
  const { waiting_for = [] } = run;
  const ofTasks = new Set([...tasks.values()].map((task) => waitOf(task, run)));
  return waiting_for.filter((wait) => !ofTasks.has(wait));
}

/** The cost of the run so far: each task has the cost of all of them at its last event. */
function costOf(tasks: readonly SpecTask[]): number | null {
  return tasks.some(({ cost }) => cost === null) ? null : Math.max(...tasks.map(({ cost }) => cost ?? 0));
}

function describeNone({ status }: RunRecord, isOver: boolean): string {
  if (status === "completed") return "The feature has no open task.";
  return isOver ? "The run ended before its first task." : "kit reads the spec …";
}

function summary(tasks: readonly SpecTask[], isOver: boolean): string {
  const count = (...some: readonly State[]): number =>
    tasks.filter(({ state }) => some.includes(state)).length;
  const waiting = isOver ? 0 : count("waiting");
  const missed = count("refused", "denied", "skipped");
  return [
    `${count("closed")} of ${tasks.length} closed`,
    ...(waiting === 0 ? [] : [`${waiting} ${waiting === 1 ? "waits" : "wait"} for you`]),
    ...(missed === 0 ? [] : [`${missed} not done`]),
  ].join(" · ");
}

interface TaskRowProps {
  readonly task: SpecTask;
  readonly planned: PlannedTask | undefined;
  readonly runId: string;
  readonly wait: RunWait | undefined;
  readonly isOver: boolean;
}

function TaskRow({ task, planned, runId, wait, isOver }: TaskRowProps): ReactNode {
  const { state, title, attempt, commit } = task;
  // A run that was cancelled or failed leaves its tasks as they were.
  const isLeft = isOver && (state === "working" || state === "judging" || state === "waiting");
  const { label, tone } = isLeft ? { label: "stopped", tone: "none" as const } : states[state];
  const facts = [
    ...(attempt > 0 ? [`attempt ${attempt}`] : []),
    ...(commit === undefined ? [] : [commit.slice(0, 10)]),
  ];
  return (
    <details className="group/task text-sm" open={wait !== undefined}>
      <summary className="flex min-h-11 cursor-pointer flex-wrap items-center gap-x-3 gap-y-0.5 px-4 py-1.5 hover:bg-raised">
        <span className="text-faint transition-transform group-open/task:rotate-90">
          <Icon name="chevron" size={14} />
        </span>
        <bdi className="min-w-8 font-mono text-soft text-xs">{visible(task.task)}</bdi>
        <bdi className="min-w-0 flex-1 truncate font-medium foreign">{visible(title)}</bdi>
        <Status value={label} tone={tone} />
        <span className="w-full pl-[4.375rem] text-faint text-xs tabular empty:hidden sm:w-44 sm:pl-0 sm:text-right sm:empty:block">
          {facts.join(" · ")}
        </span>
      </summary>
      <div className="flex flex-col gap-4 px-4 pt-1 pb-4 sm:pl-[2.625rem]">
        <TaskContent task={task} planned={planned}>
          {wait?.signal === undefined || isReadOnly ? null : (
            <TaskDecision key={wait.signal} runId={runId} signal={wait.signal} />
          )}
        </TaskContent>
      </div>
    </details>
  );
}

function TaskContent({
  task: { path, line, session, verdict, judged, earlier, diff, reason, state, work_tree },
  planned,
  children,
}: {
  readonly task: SpecTask;
  readonly planned: PlannedTask | undefined;
  readonly children: ReactNode;
}): ReactNode {
  const criteria = planned?.criteria ?? [];
  return (
    <>
      <p className="flex flex-wrap items-baseline gap-x-4 gap-y-1">
        <SourceLink path={path} line={line} />
        {session === undefined ? null : (
          // The agents of a run have no screen: their events are in the run's stream.
          <span className="text-faint text-xs">
            session <bdi className="font-mono foreign">{visible(session)}</bdi>
          </span>
        )}
      </p>
      {reason === undefined || state === "refused" ? null : <p className="foreign">{visible(reason)}</p>}
      {work_tree === undefined ? null : (
        <p className="text-soft">
          Its files are in <bdi className="font-mono text-xs foreign">{visible(work_tree)}</bdi>
        </p>
      )}
      {earlier.map(({ attempt, verdict: past }) => (
        <Part key={`${past.tree} ${past.duration_ms}`} title={`Attempt ${attempt}: ${past.end}`}>
          <Reasons reasons={past.reasons} />
        </Part>
      ))}
      {verdict === undefined ? (
        <Criteria planned={criteria} />
      ) : (
        <>
          {earlier.length === 0 ? null : (
            <h3 className="-mb-3 font-medium text-soft text-xs">Attempt {judged}</h3>
          )}
          <VerdictView verdict={verdict} planned={criteria}>
            {diff === undefined ? null : <Patch text={diff} />}
            {state === "closed" && verdict.end === "ask" ? <p>A person has accepted it.</p> : null}
            {children}
          </VerdictView>
        </>
      )}
    </>
  );
}

/** Accepts the judged tree of a task, or says what is missing, which is the agent's next prompt. */
function TaskDecision({ runId, signal }: { readonly runId: string; readonly signal: string }): ReactNode {
  const field = useId();
  const [comment, setComment] = useState("");
  const missing = comment.trim();
  const send = useChange(
    (client, approved: boolean) => {
      const payload = approved || missing === "" ? { approved } : { approved, comment: missing };
      return client.runs.signal(runId, { name: signal, payload }, { idempotencyKey: crypto.randomUUID() });
    },
    ["runs", "waiting"],
  );
  const isSent = send.isPending || send.isSuccess;
  return (
    <form
      onSubmit={(event) => event.preventDefault()}
      className="flex flex-wrap items-end justify-end gap-2 rounded-lg border border-warn/40 bg-warn-back/50 p-2"
    >
      <div className="flex w-full flex-col gap-1">
        <label htmlFor={field} className="text-soft text-xs">
          What is missing? The agent gets it as its next prompt.
        </label>
        <textarea
          id={field}
          rows={2}
          maxLength={10_000}
          value={comment}
          onChange={({ target }) => setComment(target.value)}
          aria-describedby={`${field}-hint`}
          className="w-full rounded-md border border-line-strong bg-panel px-2.5 py-1.5 text-sm"
        />
      </div>
      <p id={`${field}-hint`} className="mr-auto w-full text-soft text-xs sm:w-auto">
        Without a text, “Not yet” ends the task, and its files stay.
      </p>
      <Button variant="bad" icon="close" disabled={isSent} onClick={() => send.mutate(false)}>
        Not yet
      </Button>
      <Button variant="solid" icon="check" disabled={isSent} onClick={() => send.mutate(true)}>
        Accept
      </Button>
      {send.isError ? (
        <p role="alert" className="w-full text-bad text-sm foreign">
          {visible(send.error.message)}
        </p>
      ) : null}
    </form>
  );
}
