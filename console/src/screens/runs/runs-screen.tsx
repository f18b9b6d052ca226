import { useInfiniteQuery } from "@tanstack/react-query";
import { Link, useNavigate, useSearch } from "@tanstack/react-router";
import type { ReactNode } from "react";
import type { RunRecord, RunStatus } from "../../../../src/client/index.ts";
import { asked, useClient, useServer } from "../../api/use-server.ts";
import { Filter } from "../../ui/filter.tsx";
import { Page } from "../../ui/page.tsx";
import { askForMore, Rows } from "../../ui/rows.tsx";
import { ErrorNotice, Loading, Notice } from "../../ui/states.tsx";
import { Status } from "../../ui/status.tsx";
import { formatDuration, visible } from "../../ui/text.ts";
import { Age } from "../../ui/time.tsx";
import { RunTabs } from "./run-tabs.tsx";
import { StartRun } from "./start-run.tsx";

const statuses: readonly RunStatus[] = ["queued", "running", "waiting", "completed", "failed", "cancelled"];

/** The runs of workflows, the newest first. */
export function RunsScreen(): ReactNode {
  const { status, workflow } = useSearch({ from: "/console/runs" });
  const navigate = useNavigate({ from: "/console/runs" });
  const client = useClient();
  const chosen = statuses.find((one) => one === status);
  const workflows = useServer({ key: ["workflows"], ask: (to, signal) => to.workflows.list({ signal }) });
  const runs = useInfiniteQuery({
    queryKey: ["runs", chosen, workflow],
    queryFn: ({ pageParam, signal }) =>
      asked(client, () =>
        client.runs.list({ status: chosen, workflow, cursor: pageParam, limit: 100 }, { signal }),
      ),
    initialPageParam: undefined as string | undefined,
    getNextPageParam: (page) => page.next_cursor,
    refetchInterval: 4_000,
  });
  const list = runs.data?.pages.flatMap((page) => page.runs);
  const change = (filter: Readonly<Record<string, string | undefined>>) =>
    void navigate({ search: (old) => ({ ...old, ...filter }), replace: true });
  return (
    <Page
      title="Runs"
      isFixed
      actions={<StartRun workflows={workflows.data?.map(({ name }) => name) ?? []} />}
      bar={
        <>
          <RunTabs />
          <Filter
            label="Status"
            value={chosen}
            choices={statuses}
            onChange={(value) => change({ status: value })}
          />
          <Filter
            label="Workflow"
            value={workflow}
            choices={workflows.data?.map(({ name }) => name) ?? []}
            onChange={(value) => change({ workflow: value })}
          />
        </>
      }
    >
      {list === undefined ? (
        runs.isError ? (
          <ErrorNotice error={runs.error} onRetry={() => void runs.refetch()} />
        ) : (
          <Loading />
        )
      ) : list.length === 0 ? (
        <Notice
          icon="runs"
          title={
            chosen === undefined && workflow === undefined ? "No workflow has run yet" : "No run is like that"
          }
        >
          Files in <code className="font-mono">src/workflows</code> are workflows; schedules, webhooks, tools
          and this page start them.
        </Notice>
      ) : (
        <Rows items={list} keyOf={({ run_id }) => run_id} label="Runs" onEnd={() => askForMore(runs)}>
          {(run) => <RunRow run={run} />}
        </Rows>
      )}
    </Page>
  );
}

export function RunRow({ run }: { readonly run: RunRecord }): ReactNode {
  const { run_id, workflow, status, accepted_at, duration_ms, error, problem, waiting_for } = run;
  const waits = waiting_for
    ?.map(({ signal, run_id, until }) => signal ?? run_id ?? `until ${until}`)
    .join(", ");
  return (
    <Link
      to="/console/runs/$runId"
      params={{ runId: run_id }}
      className="flex min-h-13 items-center gap-3 px-4 py-1.5 text-sm hover:bg-raised"
    >
      <span className="w-22 shrink-0">
        <Status value={status} />
      </span>
      <span className="min-w-0 flex-1">
        <span className="block truncate font-medium">
          <bdi>{workflow}</bdi>
        </span>
        <span className="block truncate text-faint text-xs">
          {problem !== undefined ? (
            `cannot go on: ${visible(problem.message.slice(0, 300))}`
          ) : error === undefined ? (
            waits === undefined ? (
              <span className="font-mono">{run_id}</span>
            ) : (
              `waits for ${visible(waits)}`
            )
          ) : (
            visible(error.message.slice(0, 300))
          )}
        </span>
      </span>
      <span className="hidden w-20 text-right text-faint text-xs tabular sm:block">
        {duration_ms === undefined ? "" : formatDuration(duration_ms)}
      </span>
      <span className="w-20 text-right text-faint text-xs">
        <Age at={accepted_at} />
      </span>
    </Link>
  );
}
