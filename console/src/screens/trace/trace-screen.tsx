import { useInfiniteQuery } from "@tanstack/react-query";
import { Link, useNavigate, useParams, useSearch } from "@tanstack/react-router";
import { lazy, type ReactNode, Suspense, useMemo } from "react";
import type { OperationPage, OperationRecord, Usage } from "../../../../src/client/index.ts";
import { asked, useClient } from "../../api/use-server.ts";
import { Button } from "../../ui/button.tsx";
import { Code } from "../../ui/code.tsx";
import { ErrorBox } from "../../ui/error-box.tsx";
import { Facts } from "../../ui/facts.tsx";
import { Icon, type IconName } from "../../ui/icons.tsx";
import { Page, Panel } from "../../ui/page.tsx";
import { ErrorNotice, Loading, Notice } from "../../ui/states.tsx";
import { Status } from "../../ui/status.tsx";
import { formatCost, formatDuration, formatTokens, visible } from "../../ui/text.ts";
import { Age } from "../../ui/time.tsx";
import { readSpans, type Span } from "./trace.ts";
import { useOperation } from "./use-operation.ts";

const TurnView = lazy(async () => ({ default: (await import("./turn-view.tsx")).TurnView }));

/** The work of an instance, turn by turn: its time, its tokens, and the rules in the model's context. */
export function TraceScreen(): ReactNode {
  const { name: agent, id } = useParams({ from: "/console/agents/$name/$id/trace" });
  const { operation: chosen, span: chosenSpan } = useSearch({ from: "/console/agents/$name/$id/trace" });
  const navigate = useNavigate({ from: "/console/agents/$name/$id/trace" });
  const client = useClient();
  const pages = useInfiniteQuery({
    queryKey: ["operations", agent, id],
    queryFn: ({ pageParam, signal }) =>
      asked(client, () => client.agents.operations(agent, { id, limit: 100, before: pageParam }, { signal })),
    initialPageParam: undefined as number | undefined,
    getNextPageParam: (page) => page.next_before,
    refetchInterval: 3_000,
  });
  const operations = useMemo(() => distinct(pages.data?.pages ?? []), [pages.data]);
  const record = operations.find((one) => one.operation_id === chosen) ?? operations[0];
  const { transcript, error, isCut } = useOperation(agent, id, record);
  const operation_id = record?.operation_id ?? "";
  const spans = useMemo(() => readSpans(transcript, operation_id), [transcript, operation_id]);
  const span =
    spans.find((one) => one.id === chosenSpan) ?? spans.find(({ kind }) => kind === "turn") ?? spans[0];
  const isWaiting = spans.some(({ state }) => state === "waiting");
  const choose = (search: Readonly<Record<string, string>>) =>
    void navigate({ search: (old) => ({ ...old, ...search }), replace: true });
  return (
    <Page
      title="Trace"
      crumbs={[
        { label: "Agents", link: { to: "/console/agents" } },
        { label: agent, link: { to: "/console/agents/$name", params: { name: agent } } },
        { label: id, link: { to: "/console/agents/$name/$id", params: { name: agent, id } } },
      ]}
    >
      {pages.data === undefined ? (
        pages.isError ? (
          <ErrorNotice error={pages.error} onRetry={() => void pages.refetch()} />
        ) : (
          <Loading />
        )
      ) : record === undefined ? (
        <Notice icon="trace" title="No operations yet">
          Once {agent} is asked something, each turn appears here.{" "}
          <Link to="/console/agents/$name/$id" params={{ name: agent, id }} className="text-accent underline">
            Open the conversation
          </Link>
        </Notice>
      ) : (
        <div className="grid items-start gap-6 px-4 py-5 sm:px-6 lg:grid-cols-[14rem_minmax(0,1fr)] 2xl:grid-cols-[16rem_minmax(0,1fr)_minmax(0,1fr)]">
          <Panel title="Operations" count={operations.length}>
            <ul className="max-h-64 overflow-y-auto lg:max-h-[75dvh]">
              {operations.map((one) => (
                <li key={one.operation_id}>
                  <OperationButton
                    operation={one}
                    isChosen={one === record}
                    isWaiting={one === record && isWaiting}
                    onChoose={() => choose({ operation: one.operation_id, span: "" })}
                  />
                </li>
              ))}
            </ul>
            {pages.hasNextPage ? (
              <div className="border-line border-t p-2">
                <Button variant="quiet" isBusy={pages.isFetching} onClick={() => void pages.fetchNextPage()}>
                  Show earlier ones
                </Button>
              </div>
            ) : null}
          </Panel>
          <div className="flex min-w-0 flex-col gap-6">
            <Panel
              title="Timeline"
              actions={<CompareWith agent={agent} id={id} of={record} among={operations} />}
            >
              {spans.length === 0 ? (
                error === undefined ? (
                  <Loading rows={4} />
                ) : (
                  <ErrorNotice error={error} />
                )
              ) : (
                <Timeline
                  spans={spans}
                  chosen={span}
                  onChoose={(one) => choose({ operation: operation_id, span: one.id })}
                />
              )}
              {isCut ? (
                <p className="border-line border-t px-4 py-2 text-soft text-sm">
                  These are its first 20,000 events; it has more.
                </p>
              ) : null}
            </Panel>
          </div>
          {span === undefined ? null : (
            <div className="min-w-0 lg:col-start-2 2xl:col-start-3">
              <Details agent={agent} id={id} span={span} />
            </div>
          )}
        </div>
      )}
    </Page>
  );
}

/** An operation that resumed after an interruption is also on the page of its start. */
function distinct(pages: readonly OperationPage[]): readonly OperationRecord[] {
  const found = new Map<string, OperationRecord>();
  for (const { operations } of pages) {
    for (const one of operations) {
      const later = found.get(one.operation_id);
      found.set(one.operation_id, later === undefined ? one : { ...later, first_index: one.first_index });
    }
  }
  return [...found.values()];
}

/** Selects the operation to compare this one with. */
function CompareWith({
  agent,
  id,
  of: { operation_id, forked_from },
  among,
}: {
  readonly agent: string;
  readonly id: string;
  readonly of: OperationRecord;
  readonly among: readonly OperationRecord[];
}): ReactNode {
  const navigate = useNavigate();
  const others = among.filter((one) => one.operation_id !== operation_id).slice(0, 200);
  if (others.length === 0) return null;
  return (
    <select
      aria-label="Compare with"
      value=""
      onChange={({ target }) =>
        void navigate({
          to: "/console/agents/$name/$id/compare",
          params: { name: agent, id },
          search:
            forked_from === undefined
              ? { left: operation_id, right: target.value }
              : { left: target.value, right: operation_id },
        })
      }
      className="h-7 max-w-44 rounded-md border border-line bg-panel px-2 text-sm"
    >
      <option value="">Compare with …</option>
      {others.map((one) => (
        <option key={one.operation_id} value={one.operation_id}>
          {`${one.session}: ${visible((one.message ?? one.kind).slice(0, 60))}`}
        </option>
      ))}
    </select>
  );
}

function OperationButton({
  operation,
  isChosen,
  isWaiting,
  onChoose,
}: {
  readonly operation: OperationRecord;
  readonly isChosen: boolean;
  readonly isWaiting: boolean;
  readonly onChoose: () => void;
}): ReactNode {
  return (
    <button
      type="button"
      aria-pressed={isChosen}
      onClick={onChoose}
      className={`flex w-full flex-col gap-0.5 border-line border-b px-4 py-2 text-left text-sm hover:bg-raised ${isChosen ? "bg-raised" : ""}`}
    >
      <span className="w-full truncate">
        <bdi>{visible((operation.message ?? operation.kind).slice(0, 200))}</bdi>
      </span>
      <span className="flex gap-2 text-faint text-xs">
        <Age at={operation.started_at} />
        {operation.session === "default" ? null : (
          <span className="max-w-24 truncate">
            <bdi>{operation.session}</bdi>
          </span>
        )}
        {operation.duration_ms === undefined ? (
          <Status value={isWaiting ? "waiting for you" : "working"} />
        ) : (
          <span>{formatDuration(operation.duration_ms)}</span>
        )}
        {operation.is_error === true ? <span className="text-bad">failed</span> : null}
      </span>
    </button>
  );
}

const icons: Readonly<Record<Span["kind"], IconName>> = {
  operation: "agents",
  turn: "brain",
  call: "tool",
  compaction: "down",
};
const bars: Readonly<Record<Span["kind"], string>> = {
  operation: "bg-line-strong",
  turn: "bg-accent",
  call: "bg-good",
  compaction: "bg-warn",
};

function Timeline({
  spans,
  chosen,
  onChoose,
}: {
  readonly spans: readonly Span[];
  readonly chosen: Span | undefined;
  readonly onChoose: (span: Span) => void;
}): ReactNode {
  const start = Math.min(...spans.map((span) => span.start));
  const end = Math.max(...spans.map((span) => span.end ?? Date.now()));
  const whole = Math.max(1, end - start);
  return (
    <ul>
      {spans.slice(0, 2_000).map((span) => {
        const until = span.end ?? end;
        const isError = span.state === "failed";
        const place = (from: number, to: number) => ({
          left: `${Math.min(99, ((from - start) / whole) * 100)}%`,
          width: `${Math.max(0, ((to - from) / whole) * 100)}%`,
        });
        return (
          <li key={span.id} className="[contain-intrinsic-size:auto_2.25rem] [content-visibility:auto]">
            <button
              type="button"
              aria-pressed={span === chosen}
              onClick={() => onChoose(span)}
              className={`grid min-h-9 w-full grid-cols-[minmax(0,1fr)_4.5rem] items-center gap-x-3 px-4 py-1 text-left text-sm hover:bg-raised sm:grid-cols-[minmax(0,1fr)_minmax(0,1fr)_4.5rem] ${span === chosen ? "bg-raised" : ""}`}
            >
              <span
                className="flex min-w-0 items-center gap-2"
                style={{ paddingLeft: `${span.depth * 0.75}rem` }}
              >
                <span className={isError ? "text-bad" : "text-faint"}>
                  <Icon name={isError ? "warning" : icons[span.kind]} size={14} />
                </span>
                <span className="truncate">
                  <bdi>{visible(span.title.slice(0, 200))}</bdi>
                </span>
                {span.items === undefined || span.items === 0 ? null : (
                  <span
                    className="shrink-0 rounded bg-accent-back px-1 text-accent text-xs"
                    title="Rules and specs in the model's context"
                  >
                    {span.items}
                  </span>
                )}
              </span>
              <span className="relative hidden h-2 rounded-full bg-sunken sm:block">
                <span
                  className={`absolute inset-y-0 min-w-1 rounded-full ${isError ? "bg-bad" : bars[span.kind]}`}
                  style={place(span.start, until)}
                />
                {span.wait === undefined ? null : (
                  <span
                    title="Waited for a person"
                    className={`absolute inset-y-0 min-w-1 rounded-full bg-warn-back ring-1 ring-warn ring-inset ${span.wait.end === undefined ? "animate-pulse-soft" : ""}`}
                    style={place(span.wait.start, span.wait.end ?? until)}
                  />
                )}
              </span>
              <span className="text-right text-faint text-xs tabular">
                {span.state === "waiting" ? (
                  <span className="text-warn">waiting</span>
                ) : span.duration_ms === undefined ? (
                  "…"
                ) : (
                  formatDuration(span.duration_ms)
                )}
              </span>
            </button>
          </li>
        );
      })}
    </ul>
  );
}

function Details({
  agent,
  id,
  span,
}: {
  readonly agent: string;
  readonly id: string;
  readonly span: Span;
}): ReactNode {
  return (
    <div className="flex min-w-0 flex-col gap-6">
      <Panel title={span.kind === "turn" ? "Turn" : span.kind === "call" ? "Call" : "Operation"}>
        <Facts
          facts={{
            What: visible(span.title.slice(0, 500)),
            Took:
              span.duration_ms !== undefined
                ? formatDuration(span.duration_ms)
                : span.state === "waiting"
                  ? "waiting for you"
                  : "still at it",
            "Waited for a person":
              span.wait?.end === undefined ? undefined : formatDuration(span.wait.end - span.wait.start),
            "First word": span.first_chunk_ms === undefined ? undefined : formatDuration(span.first_chunk_ms),
            ...(span.usage === undefined ? {} : usageFacts(span.usage)),
          }}
        />
      </Panel>
      {span.error === undefined ? null : <ErrorBox error={span.error} />}
      {span.turn === undefined ? null : (
        <Suspense fallback={<Loading rows={4} />}>
          <TurnView
            key={span.turn.id}
            agent={agent}
            id={id}
            turnId={span.turn.id}
            eventIndex={span.turn.eventIndex}
            isRunning={span.state === "running"}
          />
        </Suspense>
      )}
      {span.input === undefined ? null : (
        <Panel title="Arguments">
          <div className="p-3">
            <Code value={span.input} label="arguments" />
          </div>
        </Panel>
      )}
      {span.output === undefined || span.output === "" ? null : (
        <Panel title="Result">
          <div className="p-3">
            <Code value={span.output} label="result" />
          </div>
        </Panel>
      )}
    </div>
  );
}

function usageFacts({
  input,
  output,
  cache_read,
  cost,
}: Usage): Readonly<Record<string, string | undefined>> {
  const share = input === 0 ? 0 : Math.round((cache_read / input) * 100);
  return {
    Tokens: `${formatTokens(input)} in, ${formatTokens(output)} out`,
    "From the cache": `${share} %`,
    Cost: formatCost(cost.total),
  };
}
