import { useParams } from "@tanstack/react-router";
import { type ReactNode, useEffect, useState } from "react";
import type { KitEvent, RunRecord, Verdict } from "../../../../src/client/index.ts";
import { isReadOnly } from "../../api/server.ts";
import { asked, useChange, useClient, useServer } from "../../api/use-server.ts";
import { Button } from "../../ui/button.tsx";
import { Code } from "../../ui/code.tsx";
import { ErrorBox } from "../../ui/error-box.tsx";
import { Facts } from "../../ui/facts.tsx";
import { Body, Page, Panel } from "../../ui/page.tsx";
import { SignalForm } from "../../ui/signal-form.tsx";
import { Answer } from "../../ui/states.tsx";
import { Status } from "../../ui/status.tsx";
import { formatDuration, visible } from "../../ui/text.ts";
import { Age } from "../../ui/time.tsx";
import { CauseLink, RunLink } from "./cause-link.tsx";
import { RunJournal } from "./run-journal.tsx";
import { Wait } from "./run-row.tsx";
import { otherWaits, SpecRunPanel } from "./spec-run-panel.tsx";
import { foldTask, type SpecTasks } from "./spec-tasks.ts";
import { StartRun } from "./start-run.tsx";
import { specWorkflow, verifyWorkflow } from "./task-question.ts";
import { VerdictView } from "./verdict-view.tsx";

const isOver = ({ status }: RunRecord): boolean =>
  status === "completed" || status === "failed" || status === "cancelled";

/** One run: its record, its steps, and the user's actions. */
export function RunScreen(): ReactNode {
  const { runId } = useParams({ from: "/console/runs/$runId" });
  const run = useServer({
    key: ["runs", "one", runId],
    ask: (client, signal) => client.runs.get(runId, { signal }),
    everyMs: 2_000,
  });
  const cancel = useChange((client, id: string) => client.runs.cancel(id), ["runs"]);
  const retry = useChange((client, id: string) => client.runs.retry(id), ["runs"]);
  const record = run.data;
  return (
    <Page
      title={record === undefined ? runId : record.workflow}
      crumbs={[{ label: "Runs", link: { to: "/console/runs" } }]}
      actions={
        record === undefined ? null : (
          <>
            <Status value={record.status} />
            {record.status === "failed" && !isReadOnly ? (
              <Button icon="retry" isBusy={retry.isPending} onClick={() => retry.mutate(runId)}>
                Retry
              </Button>
            ) : null}
            {isOver(record) ? (
              <StartRun workflows={[record.workflow]} label="Run again" payload={record.payload} />
            ) : isReadOnly ? null : (
              <Button
                variant="bad"
                icon="stop"
                isBusy={cancel.isPending}
                onClick={() => cancel.mutate(runId)}
              >
                Cancel
              </Button>
            )}
          </>
        )
      }
    >
      <Body>
        <Answer query={run}>{(found) => <RunContent run={found} />}</Answer>
      </Body>
    </Page>
  );
}

interface RunEvents {
  /** The newest. */
  readonly events: readonly KitEvent[];
  /** The tasks of a spec, from all events. */
  readonly tasks: SpecTasks;
}

const noEvents: RunEvents = { events: [], tasks: new Map() };

/** The live events of the run itself. */
function useRunEvents(runId: string): RunEvents {
  const client = useClient();
  const [read, setRead] = useState(noEvents);
  useEffect(() => {
    const leaving = new AbortController();
    setRead(noEvents);
    const { signal } = leaving;
    const follow = async (): Promise<void> => {
      let waiting: KitEvent[] = [];
      for await (const event of client.runs.stream(runId, {}, { signal })) {
        if (event.type === "text_delta" || event.type === "reasoning_delta") continue;
        waiting.push(event);
        if (waiting.length === 1) {
          setTimeout(() => {
            const fresh = waiting;
            waiting = [];
            setRead(({ events, tasks }) => ({
              events: [...events, ...fresh].slice(-2_000),
              tasks: fresh.reduce(foldTask, tasks),
            }));
          }, 50);
        }
      }
    };
    // The record shows how it ended.
    asked(client, follow).catch(() => undefined);
    return () => leaving.abort();
  }, [client, runId]);
  return read;
}

function RunContent({ run }: { readonly run: RunRecord }): ReactNode {
  const { error, problem, workflow, payload, result } = run;
  const { events, tasks } = useRunEvents(run.run_id);
  const isSpec = workflow === specWorkflow;
  const waits = otherWaits(run, tasks);
  return (
    <>
      {error === undefined ? null : <ErrorBox error={error} />}
      {problem === undefined ? null : <ErrorBox error={problem} />}
      {isSpec ? <SpecRunPanel run={run} begun={tasks} isOver={isOver(run)} /> : null}
      {workflow === verifyWorkflow && run.status === "completed" ? (
        <Panel title="Verdict">
          <div className="flex flex-col gap-4 p-4 text-sm">
            <VerdictView verdict={result as Verdict} />
          </div>
        </Panel>
      ) : null}
      {waits.length === 0 ? null : (
        <Panel title="Waits">
          <ul className="divide-y divide-line">
            {waits.map((wait) => (
              <li
                key={JSON.stringify(wait)}
                className="flex min-h-11 flex-wrap items-center gap-3 px-4 py-1.5 text-sm"
              >
                <span className="min-w-0 flex-1 foreign">
                  {wait.run_id === undefined ? (
                    <Wait wait={wait} />
                  ) : (
                    <>
                      for the run <RunLink id={wait.run_id} />
                    </>
                  )}
                </span>
                {wait.signal === undefined || isReadOnly ? null : (
                  <Signal runId={run.run_id} name={wait.signal} />
                )}
              </li>
            ))}
          </ul>
        </Panel>
      )}
      <div className="grid items-start gap-6 lg:grid-cols-[3fr_2fr]">
        <div className="flex min-w-0 flex-col gap-6">
          <Panel title="Journal">
            <RunJournal runId={run.run_id} events={events} isOver={isOver(run)} />
          </Panel>
          <EventLines events={events} />
        </div>
        <div className="flex min-w-0 flex-col gap-6">
          <Panel title="Record">
            <Facts
              facts={{
                Run: <span className="font-mono text-xs">{run.run_id}</span>,
                Accepted: <Age at={run.accepted_at} />,
                Started: run.started_at && <Age at={run.started_at} />,
                Took: run.duration_ms === undefined ? undefined : formatDuration(run.duration_ms),
                "Started by":
                  run.cause === undefined ? (
                    run.parent_run_id && <RunLink id={run.parent_run_id} />
                  ) : (
                    <CauseLink cause={run.cause} />
                  ),
                ...(isSpec ? settingsOf(payload) : {}),
              }}
            />
          </Panel>
          {isSpec ? null : (
            <Panel title="Payload">
              <div className="p-3">
                <Code value={payload} label="payload" />
              </div>
            </Panel>
          )}
          {result === undefined || isSpec || workflow === verifyWorkflow ? null : (
            <Panel title="Result">
              <div className="p-3">
                <Code value={result} label="result" />
              </div>
            </Panel>
          )}
        </div>
      </div>
    </>
  );
}

/** The settings of a run of `kit.spec`, as facts: `Tests by`, `Max cost`. */
function settingsOf(payload: unknown): Readonly<Record<string, string>> {
  return Object.fromEntries(
    Object.entries(payload ?? {}).map(([name, value]) => [
      `${name.charAt(0).toUpperCase()}${name.slice(1).replaceAll("_", " ")}`,
      visible(Array.isArray(value) ? value.join(", ") : String(value)),
    ]),
  );
}

function Signal({ runId, name }: { readonly runId: string; readonly name: string }): ReactNode {
  const journal = useServer({
    key: ["runs", "journal", runId, "waits"],
    ask: (client, signal) => client.runs.journal(runId, { limit: 1_000 }, { signal }),
  });
  const schema = journal.data?.entries.find(
    (entry) => entry.kind === "wait" && entry.state === "pending" && entry.name === name,
  )?.schema;
  return <SignalForm runId={runId} name={name} schema={schema} />;
}

/** Log lines, questions to agents and their calls; the journal shows everything else. */
function EventLines({ events }: { readonly events: readonly KitEvent[] }): ReactNode {
  const lines = events.flatMap(toLine);
  if (lines.length === 0) return null;
  return (
    <Panel title="Log" count={lines.length}>
      <ol className="flex flex-col py-2">
        {lines.map(({ event, text, tone, aside }) => (
          <li key={event.index} className="flex gap-3 px-4 py-1 text-sm">
            <time
              dateTime={event.timestamp}
              title={new Date(event.timestamp).toLocaleString()}
              className="w-16 shrink-0 pt-px text-faint text-xs tabular"
            >
              {new Date(event.timestamp).toLocaleTimeString(undefined, { hourCycle: "h23" })}
            </time>
            <span className={`mt-1.5 size-2 shrink-0 rounded-full ${dots[tone]}`} />
            <span className="min-w-0 flex-1 foreign">{visible(text.slice(0, 2_000))}</span>
            <span className="text-faint text-xs tabular">{aside}</span>
          </li>
        ))}
      </ol>
    </Panel>
  );
}

const dots = { none: "bg-line-strong", good: "bg-good", bad: "bg-bad", warn: "bg-warn" } as const;

interface Line {
  readonly event: KitEvent;
  readonly text: string;
  readonly tone: keyof typeof dots;
  readonly aside?: string;
}

function toLine(event: KitEvent): readonly Line[] {
  switch (event.type) {
    case "log":
      return [
        {
          event,
          text: event.message,
          tone: event.level === "error" ? "bad" : event.level === "warning" ? "warn" : "none",
        },
      ];
    case "operation_start":
      return [
        { event, text: `${event.agent} was asked: ${event.message ?? event.operation_kind}`, tone: "none" },
      ];
    case "operation":
      return [
        {
          event,
          text: `${event.agent} ${event.is_error ? "failed" : "answered"}`,
          tone: event.is_error ? "bad" : "good",
          aside: formatDuration(event.duration_ms),
        },
      ];
    case "tool_start":
      return [{ event, text: `${event.agent} calls ${event.tool}`, tone: "none" }];
    case "error":
      return [{ event, text: event.error.message, tone: event.will_retry ? "warn" : "bad" }];
    default:
      return [];
  }
}
