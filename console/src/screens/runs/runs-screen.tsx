import { useNavigate, useSearch } from "@tanstack/react-router";
import type { ReactNode } from "react";
import type { RunPage, RunRecord, RunStatus } from "../../../../src/client/index.ts";
import { isReadOnly } from "../../api/server.ts";
import { useServer } from "../../api/use-server.ts";
import { BulkAction } from "../../ui/bulk-action.tsx";
import { BarField } from "../../ui/chips.tsx";
import { Filter } from "../../ui/filter.tsx";
import { Listing, useList } from "../../ui/listing.tsx";
import { Page } from "../../ui/page.tsx";
import { Notice } from "../../ui/states.tsx";
import { findSpan, TimeFilter, useSince } from "../../ui/time-filter.tsx";
import { RunRow } from "./run-row.tsx";
import { RunTabs } from "./run-tabs.tsx";
import { StartRun } from "./start-run.tsx";

const statuses: readonly RunStatus[] = ["queued", "running", "waiting", "completed", "failed", "cancelled"];

/** The runs of workflows, the newest first. */
export function RunsScreen(): ReactNode {
  const { status, workflow, q, since: span } = useSearch({ from: "/console/runs" });
  const navigate = useNavigate({ from: "/console/runs" });
  const chosen = statuses.find((one) => one === status);
  const since = useSince(findSpan(span));
  const workflows = useServer({ key: ["workflows"], ask: (to, signal) => to.workflows.list({ signal }) });
  const filter = { workflow, search: q, since };
  const list = useList<RunPage>({
    key: ["runs", chosen, filter],
    ask: (client, { cursor, signal }) =>
      client.runs.list(
        { ...filter, status: chosen, count: cursor === undefined ? true : undefined, cursor, limit: 100 },
        { signal },
      ),
    everyMs: 4_000,
  });
  const change = (changed: Readonly<Record<string, string | undefined>>) =>
    void navigate({ search: (old) => ({ ...old, ...changed }), replace: true });
  const names = workflows.data?.map(({ name }) => name) ?? [];
  const isFiltered = (chosen ?? workflow ?? q ?? since) !== undefined;
  const total = list.data?.pages[0]?.total?.toLocaleString() ?? "all";
  return (
    <Page
      title="Runs"
      isFixed
      actions={<StartRun workflows={names} />}
      tabs={<RunTabs />}
      bar={
        <>
          <BarField
            label="Search runs"
            value={q ?? ""}
            onSubmit={(text) => change({ q: text || undefined })}
          />
          <Filter
            label="Status"
            value={chosen}
            choices={statuses}
            onChange={(value) => change({ status: value })}
          />
          <Filter
            label="Workflow"
            value={workflow}
            choices={names}
            onChange={(value) => change({ workflow: value })}
          />
          <TimeFilter value={findSpan(span)} onChange={(value) => change({ since: value })} />
        </>
      }
    >
      <Listing
        list={list}
        itemsIn={({ runs }) => runs}
        keyOf={({ run_id }: RunRecord) => run_id}
        label="Runs"
        nouns={["run", "runs"]}
        actions={
          isReadOnly ? null : chosen === "failed" ? (
            <BulkAction
              key={JSON.stringify(filter)}
              verb="Retry"
              participle="retried"
              what={`${total} failed runs`}
              icon="retry"
              stale={["runs"]}
              step={async (client, cursor) => {
                const { retried, failed, next_cursor } = await client.runs.retryAll({
                  ...filter,
                  limit: 1_000,
                  cursor,
                });
                return { done: retried.length, failed, next_cursor };
              }}
            />
          ) : chosen === "queued" || chosen === "running" || chosen === "waiting" ? (
            <BulkAction
              key={JSON.stringify([chosen, filter])}
              verb="Cancel"
              participle="cancelled"
              what={`${total} ${chosen} runs`}
              icon="stop"
              isBad
              stale={["runs", "waiting"]}
              step={async (client, cursor) => {
                const { cancelled, failed, next_cursor } = await client.runs.cancelAll({
                  ...filter,
                  status: chosen,
                  limit: 1_000,
                  cursor,
                });
                return { done: cancelled.length, failed, next_cursor };
              }}
            />
          ) : null
        }
        empty={
          <Notice icon="runs" title={isFiltered ? "No run matches" : "No workflow has run yet"}>
            {isFiltered ? (
              "Other filters may find some."
            ) : (
              <>
                Files in <code className="font-mono">src/workflows</code> are workflows; schedules, webhooks,
                tools and this page start them.
              </>
            )}
          </Notice>
        }
      >
        {(run) => <RunRow run={run} />}
      </Listing>
    </Page>
  );
}
