import { useInfiniteQuery } from "@tanstack/react-query";
import { Link, useNavigate, useParams, useSearch } from "@tanstack/react-router";
import type { ReactNode } from "react";
import type { DispatchRecord, DispatchStatus, KitClient } from "../../../../src/client/index.ts";
import { isReadOnly } from "../../api/server.ts";
import { asked, useChange, useClient, useServer } from "../../api/use-server.ts";
import { Button } from "../../ui/button.tsx";
import { Code } from "../../ui/code.tsx";
import { ErrorBox } from "../../ui/error-box.tsx";
import { Facts } from "../../ui/facts.tsx";
import { Filter } from "../../ui/filter.tsx";
import { Body, Page, Panel } from "../../ui/page.tsx";
import { askForMore, Rows } from "../../ui/rows.tsx";
import { Answer, ErrorNotice, Loading, Notice } from "../../ui/states.tsx";
import { Status } from "../../ui/status.tsx";
import { toReadable, visible } from "../../ui/text.ts";
import { Age } from "../../ui/time.tsx";
import { CauseLink } from "./cause-link.tsx";

const statuses: readonly DispatchStatus[] = ["queued", "running", "completed", "failed", "cancelled"];

/** Inputs that were dispatched to agents, the newest first; failed ones are the dead letters. */
export function DispatchesScreen(): ReactNode {
  const { status } = useSearch({ from: "/console/dispatches" });
  const navigate = useNavigate({ from: "/console/dispatches" });
  const client = useClient();
  const chosen = statuses.find((one) => one === status);
  const dispatches = useInfiniteQuery({
    queryKey: ["dispatches", chosen],
    queryFn: ({ pageParam, signal }) =>
      asked(client, () =>
        client.dispatches.list({ status: chosen, cursor: pageParam, limit: 100 }, { signal }),
      ),
    initialPageParam: undefined as string | undefined,
    getNextPageParam: (page) => page.next_cursor,
    refetchInterval: 4_000,
  });
  const redrive = useChange(retryAll, ["dispatches"]);
  const list = dispatches.data?.pages.flatMap((page) => page.dispatches);
  const failed = list?.filter((one) => one.status === "failed") ?? [];
  return (
    <Page
      title="Dispatches"
      isFixed
      actions={
        isReadOnly || failed.length === 0 ? null : (
          <Button icon="retry" isBusy={redrive.isPending} onClick={() => redrive.mutate(undefined)}>
            Retry all that failed
          </Button>
        )
      }
      bar={
        <>
          <Filter
            label="Status"
            value={chosen}
            choices={statuses}
            onChange={(value) =>
              void navigate({ search: value === undefined ? {} : { status: value }, replace: true })
            }
          />
          {redrive.isError ? <span className="text-bad text-sm">{redrive.error.message}</span> : null}
          {redrive.data === undefined ? null : (
            <span role="status" className="text-soft text-sm">
              {redrive.data.retried.toLocaleString()} retried
              {redrive.data.failed === 0 ? "" : `, ${redrive.data.failed.toLocaleString()} could not be`}
              {redrive.data.why === undefined ? "" : `: ${redrive.data.why}`}
            </span>
          )}
        </>
      }
    >
      {list === undefined ? (
        dispatches.isError ? (
          <ErrorNotice error={dispatches.error} onRetry={() => void dispatches.refetch()} />
        ) : (
          <Loading />
        )
      ) : list.length === 0 ? (
        <Notice
          icon="dispatches"
          title={chosen === undefined ? "Nothing was dispatched yet" : "No dispatch is like that"}
        >
          Webhooks, schedules and programs hand inputs to agents; each is listed here until it is done, over
          crashes too.
        </Notice>
      ) : (
        <Rows
          items={list}
          keyOf={({ dispatch_id }) => dispatch_id}
          label="Dispatches"
          onEnd={() => askForMore(dispatches)}
        >
          {(one) => <DispatchRow dispatch={one} />}
        </Rows>
      )}
    </Page>
  );
}

/** The most pages of dead letters that one click retries. */
const mostPages = 100;

async function retryAll(
  client: KitClient,
): Promise<{ readonly retried: number; readonly failed: number; readonly why: string | undefined }> {
  let [retried, failed] = [0, 0];
  let why: string | undefined;
  let cursor: string | undefined;
  for (let page = 0; page < mostPages; page += 1) {
    const answer = await client.dispatches.retryAll({ limit: 1_000, cursor });
    retried += answer.retried.length;
    failed += answer.failed.length;
    why ??= answer.failed[0]?.error.message;
    cursor = answer.next_cursor;
    if (cursor === undefined) break;
  }
  return { retried, failed, why };
}

export function DispatchRow({ dispatch }: { readonly dispatch: DispatchRecord }): ReactNode {
  const { dispatch_id, agent, instance_id, status, input, error, accepted_at } = dispatch;
  return (
    <Link
      to="/console/dispatches/$dispatchId"
      params={{ dispatchId: dispatch_id }}
      className="flex min-h-13 items-center gap-3 px-4 py-1.5 text-sm hover:bg-raised"
    >
      <span className="w-22 shrink-0">
        <Status value={status} />
      </span>
      <span className="min-w-0 flex-1">
        <span className="block truncate">
          <bdi className="font-medium">{agent}</bdi>
          <span className="text-soft">
            {" "}
            / <bdi>{instance_id}</bdi>
          </span>
        </span>
        <span className="block truncate text-faint text-xs">
          {visible((error?.message ?? toReadable(input)).slice(0, 300))}
        </span>
      </span>
      <span className="w-20 text-right text-faint text-xs">
        <Age at={accepted_at} />
      </span>
    </Link>
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
          {status === undefined ? null : <Status value={status} />}
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
