import { useInfiniteQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { type ReactNode, useMemo } from "react";
import type { KitEvent, RunJournalEntry } from "../../../../src/client/index.ts";
import { asked, useClient } from "../../api/use-server.ts";
import { Button } from "../../ui/button.tsx";
import { Code } from "../../ui/code.tsx";
import { Icon, type IconName } from "../../ui/icons.tsx";
import { ErrorNotice, Loading, Notice } from "../../ui/states.tsx";
import { formatDuration, formatTokens, visible } from "../../ui/text.ts";
import { Moment } from "../../ui/time.tsx";

const icons: Readonly<Record<RunJournalEntry["kind"], IconName>> = {
  step: "tool",
  sleep: "wait",
  wait: "approvals",
  now: "wait",
  uuid: "key",
  dispatch: "dispatches",
  patch: "branch",
};

/** The journal of a run as a timeline: steps, sleeps and waits in order, each with its result. */
export function RunJournal({
  runId,
  events,
  isOver,
}: {
  readonly runId: string;
  readonly events: readonly KitEvent[];
  readonly isOver: boolean;
}): ReactNode {
  const client = useClient();
  const journal = useInfiniteQuery({
    queryKey: ["runs", "journal", runId],
    queryFn: ({ pageParam, signal }) =>
      asked(client, () => client.runs.journal(runId, { after: pageParam, limit: 200 }, { signal })),
    initialPageParam: 0,
    getNextPageParam: (page) => page.next_after,
    refetchInterval: isOver ? false : 2_000,
  });
  const times = useMemo(() => readTimes(runId, events), [runId, events]);
  const entries = journal.data?.pages.flatMap((page) => page.entries);
  if (entries === undefined)
    return journal.isError ? (
      <ErrorNotice error={journal.error} onRetry={() => void journal.refetch()} />
    ) : (
      <Loading rows={4} />
    );
  if (entries.length === 0)
    return (
      <Notice icon="runs" title="The journal is empty">
        Steps, sleeps and waits stand here as they end.
      </Notice>
    );
  const starts = [...times.values()].map(({ start }) => start);
  const first = Math.min(...starts);
  const whole = Math.max(1, Math.max(...[...times.values()].map(({ end }) => end ?? Date.now())) - first);
  return (
    <>
      <ol className="divide-y divide-line">
        {entries.map((entry) => (
          <Entry
            key={entry.position}
            entry={entry}
            time={times.get(entry.position)}
            first={first}
            whole={whole}
          />
        ))}
      </ol>
      {journal.hasNextPage ? (
        <div className="border-line border-t p-2">
          <Button
            variant="quiet"
            isBusy={journal.isFetchingNextPage}
            onClick={() => void journal.fetchNextPage()}
          >
            Show more
          </Button>
        </div>
      ) : null}
    </>
  );
}

interface StepTime {
  readonly start: number;
  readonly end: number | undefined;
  readonly attempts: number;
}

/** The start and end of each step, by its position, which is the end of the step's id. */
function readTimes(runId: string, events: readonly KitEvent[]): ReadonlyMap<number, StepTime> {
  const times = new Map<number, StepTime>();
  for (const event of events) {
    if ((event.type !== "step_start" && event.type !== "step_end") || event.step_id === undefined) continue;
    const [, position] = event.step_id.startsWith(`${runId}:`) ? event.step_id.split(":") : [];
    const at = Number(position);
    if (!Number.isSafeInteger(at)) continue;
    const known = times.get(at);
    const time = Date.parse(event.timestamp);
    if (event.type === "step_start")
      times.set(at, { start: known?.start ?? time, end: undefined, attempts: (known?.attempts ?? 0) + 1 });
    else if (known !== undefined) times.set(at, { ...known, end: time });
  }
  return times;
}

function Entry({
  entry,
  time,
  first,
  whole,
}: {
  readonly entry: RunJournalEntry;
  readonly time: StepTime | undefined;
  readonly first: number;
  readonly whole: number;
}): ReactNode {
  const { kind, name, state, until, value, value_omitted, error } = entry;
  const took = time?.end === undefined ? undefined : time.end - time.start;
  const tone = state === "failed" ? "text-bad" : state === "pending" ? "text-warn" : "text-faint";
  const hasContent = value !== undefined || error !== undefined || value_omitted !== undefined;
  const title = (
    <span className="grid min-h-9 min-w-0 flex-1 grid-cols-[minmax(0,1fr)_4.5rem] items-center gap-x-3 sm:grid-cols-[minmax(0,1fr)_minmax(0,12rem)_4.5rem]">
      <span className="flex min-w-0 items-center gap-2">
        <span className={tone}>
          <Icon name={state === "failed" ? "warning" : icons[kind]} size={14} />
        </span>
        <span className="w-16 shrink-0 text-faint text-xs">{kind}</span>
        <span className="min-w-0 truncate">
          <bdi>{visible(name ?? "")}</bdi>
          {(time?.attempts ?? 1) > 1 ? <span className="text-soft"> · {time?.attempts} attempts</span> : null}
          {state !== "pending" ? null : (
            <span className="text-soft">
              {" "}
              waits
              {until === undefined ? null : (
                <>
                  , until <Moment at={until} />
                </>
              )}
            </span>
          )}
        </span>
      </span>
      <span className="relative hidden h-2 rounded-full bg-sunken sm:block">
        {time === undefined ? null : (
          <span
            className={`absolute inset-y-0 min-w-1 rounded-full ${state === "failed" ? "bg-bad" : "bg-accent"}`}
            style={{
              left: `${Math.min(99, ((time.start - first) / whole) * 100)}%`,
              width: `${Math.min(100, (((time.end ?? Date.now()) - time.start) / whole) * 100)}%`,
            }}
          />
        )}
      </span>
      <span className="text-right text-faint text-xs tabular">
        {took === undefined ? "" : formatDuration(took)}
      </span>
    </span>
  );
  if (!hasContent) return <li className="flex px-4 text-sm">{title}</li>;
  return (
    <li className="text-sm">
      <details>
        <summary className="flex cursor-pointer items-center gap-2 px-4 hover:bg-raised">{title}</summary>
        <div className="px-4 pb-3">
          {error === undefined ? null : <p className="text-bad foreign">{visible(error.message)}</p>}
          {value_omitted === undefined ? null : (
            <p className="text-soft">Too large to be shown: {formatTokens(value_omitted)} characters.</p>
          )}
          {value === undefined ? null : kind === "dispatch" ? (
            <Dispatched value={value} />
          ) : (
            <Code value={value} label={`what ${kind} ${name ?? ""} gave`} />
          )}
        </div>
      </details>
    </li>
  );
}

/** The receipt of a dispatch, with a link to the dispatch. */
function Dispatched({ value }: { readonly value: unknown }): ReactNode {
  const id: unknown =
    typeof value === "object" && value !== null ? Reflect.get(value, "dispatch_id") : undefined;
  if (typeof id !== "string") return <Code value={value} label="receipt" />;
  return (
    <Link to="/console/dispatches/$dispatchId" params={{ dispatchId: id }} className="text-accent underline">
      <span className="font-mono text-xs">{id}</span>
    </Link>
  );
}
