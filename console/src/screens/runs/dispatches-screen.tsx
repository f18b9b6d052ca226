import { Link, useNavigate, useParams, useSearch } from "@tanstack/react-router";
import type { ReactNode } from "react";
import type { DispatchPage, DispatchRecord, DispatchStatus } from "../../../../src/client/index.ts";
import { isReadOnly } from "../../api/server.ts";
import { useChange, useServer } from "../../api/use-server.ts";
import { BulkAction } from "../../ui/bulk-action.tsx";
import { Button } from "../../ui/button.tsx";
import { BarField } from "../../ui/chips.tsx";
import { Code } from "../../ui/code.tsx";
import { ErrorBox } from "../../ui/error-box.tsx";
import { Facts } from "../../ui/facts.tsx";
import { Filter } from "../../ui/filter.tsx";
import { Listing, useList } from "../../ui/listing.tsx";
import { Body, Page, Panel } from "../../ui/page.tsx";
import { Answer, Notice } from "../../ui/states.tsx";
import { Status } from "../../ui/status.tsx";
import { Age } from "../../ui/time.tsx";
import { findSpan, TimeFilter, useSince } from "../../ui/time-filter.tsx";
import { CauseLink } from "./cause-link.tsx";
import { DispatchRow, dispatchState } from "./dispatch-row.tsx";

const statuses: readonly DispatchStatus[] = ["queued", "running", "completed", "failed", "cancelled"];

/** Inputs that were dispatched to agents, the newest first; failed ones are the dead letters. */
export function DispatchesScreen(): ReactNode {
  const { status, q, since: span, agent } = useSearch({ from: "/console/dispatches" });
  const navigate = useNavigate({ from: "/console/dispatches" });
  const chosen = statuses.find((one) => one === status);
  const since = useSince(findSpan(span));
  const agents = useServer({ key: ["agents"], ask: (client, signal) => client.agents.list({ signal }) });
  const filter = { agent, search: q, since };
  const list = useList<DispatchPage>({
    key: ["dispatches", chosen, filter],
    ask: (client, { cursor, signal }) =>
      client.dispatches.list(
        { ...filter, status: chosen, count: cursor === undefined ? true : undefined, cursor, limit: 100 },
        { signal },
      ),
    everyMs: 4_000,
  });
  const change = (changed: Readonly<Record<string, string | undefined>>) =>
    void navigate({ search: (old) => ({ ...old, ...changed }), replace: true });
  const isFiltered = (chosen ?? agent ?? q ?? since) !== undefined;
  const total = list.data?.pages[0]?.total?.toLocaleString() ?? "all";
  return (
    <Page
      title="Dispatches"
      isFixed
      bar={
        <>
          <BarField
            label="Search dispatches"
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
            label="Agent"
            value={agent}
            choices={agents.data?.map(({ name }) => name) ?? []}
            onChange={(value) => change({ agent: value })}
          />
          <TimeFilter value={findSpan(span)} onChange={(value) => change({ since: value })} />
        </>
      }
    >
      <Listing
        list={list}
        itemsIn={({ dispatches }) => dispatches}
        keyOf={({ dispatch_id }: DispatchRecord) => dispatch_id}
        label="Dispatches"
        nouns={["dispatch", "dispatches"]}
        actions={
          isReadOnly ? null : chosen === "failed" ? (
            <BulkAction
              key={JSON.stringify(filter)}
              verb="Retry"
              participle="retried"
              what={`${total} failed dispatches`}
              icon="retry"
              stale={["dispatches"]}
              step={async (client, cursor) => {
                const { retried, failed, next_cursor } = await client.dispatches.retryAll({
                  ...filter,
                  limit: 1_000,
                  cursor,
                });
                return { done: retried.length, failed, next_cursor };
              }}
            />
          ) : chosen === "queued" || chosen === "running" ? (
            <BulkAction
              key={JSON.stringify([chosen, filter])}
              verb="Cancel"
              participle="cancelled"
              what={`${total} ${chosen} dispatches`}
              icon="stop"
              isBad
              stale={["dispatches", "waiting"]}
              step={async (client, cursor) => {
                const { cancelled, failed, next_cursor } = await client.dispatches.cancelAll({
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
          <Notice icon="dispatches" title={isFiltered ? "No dispatch matches" : "Nothing was dispatched yet"}>
            {isFiltered
              ? "Other filters may find some."
              : "Webhooks, schedules and programs hand inputs to agents; each is listed here until it is done, over crashes too."}
          </Notice>
        }
      >
        {(one) => <DispatchRow dispatch={one} />}
      </Listing>
    </Page>
  );
}

/** One dispatch: its input and its outcome. */
export function DispatchScreen(): ReactNode {
  const { dispatchId } = useParams({ from: "/console/dispatches/$dispatchId" });
  const dispatch = useServer({
    key: ["dispatches", "one", dispatchId],
    ask: (client, signal) => client.dispatches.get(dispatchId, { signal }),
    everyMs: 3_000,
  });
  const retry = useChange((client, id: string) => client.dispatches.retry(id), ["dispatches"]);
  const cancel = useChange((client, id: string) => client.dispatches.cancel(id), ["dispatches"]);
  const { status } = dispatch.data ?? {};
  return (
    <Page
      title={dispatchId}
      crumbs={[{ label: "Dispatches", link: { to: "/console/dispatches" } }]}
      actions={
        <>
          {dispatch.data === undefined ? null : <Status value={dispatchState(dispatch.data)} />}
          {isReadOnly || status !== "failed" ? null : (
            <Button icon="retry" isBusy={retry.isPending} onClick={() => retry.mutate(dispatchId)}>
              Retry
            </Button>
          )}
          {isReadOnly || (status !== "queued" && status !== "running") ? null : (
            <Button
              variant="bad"
              icon="stop"
              isBusy={cancel.isPending}
              onClick={() => cancel.mutate(dispatchId)}
            >
              Cancel
            </Button>
          )}
        </>
      }
    >
      <Body>
        <Answer query={dispatch}>
          {(one) => (
            <>
              {one.error === undefined ? null : <ErrorBox error={one.error} />}
              <Panel title="Record">
                <Facts
                  facts={{
                    Agent: (
                      <Link
                        to="/console/agents/$name/$id"
                        params={{ name: one.agent, id: one.instance_id }}
                        search={one.session === "default" ? {} : { session: one.session }}
                        className="text-accent underline"
                      >
                        <bdi>
                          {one.agent} / {one.instance_id}
                        </bdi>
                      </Link>
                    ),
                    "Begun by": one.cause && <CauseLink cause={one.cause} />,
                    Accepted: <Age at={one.accepted_at} />,
                    Attempts: one.attempts,
                    "Next attempt": one.next_attempt_at && <Age at={one.next_attempt_at} />,
                    Ended: one.ended_at && <Age at={one.ended_at} />,
                    "Idempotency key": one.idempotency_key,
                  }}
                />
              </Panel>
              <Panel title="Input">
                <div className="p-3">
                  <Code value={one.input} label="input" />
                </div>
              </Panel>
              {one.result === undefined ? null : (
                <Panel title="Result">
                  <div className="p-3">
                    <Code value={one.result} label="result" />
                  </div>
                </Panel>
              )}
            </>
          )}
        </Answer>
      </Body>
    </Page>
  );
}
