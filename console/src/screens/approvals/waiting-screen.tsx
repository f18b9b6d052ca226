import { Link } from "@tanstack/react-router";
import type { ReactNode } from "react";
import type { ApprovalRequest, WaitingItem, WaitingPage } from "../../../../src/client/index.ts";
import { isReadOnly } from "../../api/server.ts";
import { Button } from "../../ui/button.tsx";
import { Decision } from "../../ui/decision.tsx";
import { useList } from "../../ui/listing.tsx";
import { Body, Page } from "../../ui/page.tsx";
import { SignalForm } from "../../ui/signal-form.tsx";
import { ErrorNotice, Loading, Notice } from "../../ui/states.tsx";
import { visible } from "../../ui/text.ts";
import { Age, Moment } from "../../ui/time.tsx";
import { touchedBy, WaitingCall } from "../../ui/tool-call.tsx";
import { RunLink } from "../runs/cause-link.tsx";
import { describeQuestion, readQuestion } from "../runs/task-question.ts";
import { usePlan } from "../runs/use-plan.ts";
import { keyOfItem } from "./inbox-row.tsx";
import { LoginCard } from "./login-card.tsx";
import { AppliesTo } from "./touched-files.tsx";

type Signal = Extract<WaitingItem, { kind: "signal" }>;

/** The calls of all agents and the runs that wait for a person, the oldest first. */
export function WaitingScreen(): ReactNode {
  const list = useList<WaitingPage>({
    key: ["waiting", "pages"],
    ask: (client, { cursor, signal }) => client.waiting.list({ limit: 50, cursor }, { signal }),
    everyMs: 4_000,
  });
  const items = list.data?.pages.flatMap((page) => page.items);
  const total = list.data?.pages[0]?.total ?? 0;
  return (
    <Page title="Waiting for you">
      <Body>
        {items === undefined ? (
          list.isError ? (
            <ErrorNotice error={list.error} onRetry={() => void list.refetch()} />
          ) : (
            <Loading />
          )
        ) : items.length === 0 ? (
          <Notice icon="approvals" title="Nothing waits for you">
            Calls of tools that need an approval, runs that wait for a signal, and MCP servers that need a
            login stand here until a person decides. The tab&apos;s title shows their number.
          </Notice>
        ) : (
          <>
            <p role="status" className="text-faint text-xs tabular">
              {`${total.toLocaleString()} ${total === 1 ? "decision waits" : "decisions wait"}, the oldest first`}
            </p>
            <ul className="flex flex-col gap-4">
              {items.map((item) => (
                <WaitingCard key={keyOfItem(item)} item={item} />
              ))}
            </ul>
            {list.hasNextPage ? (
              <Button isBusy={list.isFetchingNextPage} onClick={() => void list.fetchNextPage()}>
                Show more
              </Button>
            ) : null}
          </>
        )}
      </Body>
    </Page>
  );
}

function WaitingCard({ item }: { readonly item: WaitingItem }): ReactNode {
  switch (item.kind) {
    case "call":
      return <ApprovalCard approval={item.approval} />;
    case "signal":
      return <SignalCard item={item} />;
    case "login":
      return <LoginCard item={item} />;
  }
}

function SignalCard({ item }: { readonly item: Signal }): ReactNode {
  const { run_id, workflow, signal, message, schema, requested_at, until, payload_start } = item;
  const question = describeQuestion(item);
  const task = usePlan(run_id, question !== undefined)?.find(
    ({ number }) => number === readQuestion(item, signal)?.task,
  );
  const title = task === undefined ? question : `${question}: ${task.title}`;
  return (
    <li className="flex min-w-0 flex-col gap-3 rounded-lg border border-line bg-panel p-4">
      <div className="flex flex-wrap items-baseline gap-x-2 gap-y-1 text-sm">
        <h2 className="font-semibold text-sm foreign">{visible(title ?? signal)}</h2>
        <span className="text-soft">
          of <bdi>{visible(workflow)}</bdi>, <RunLink id={run_id} />
        </span>
        <span className="ml-auto text-faint text-xs">
          <Age at={requested_at} />
          {until === undefined ? null : (
            <>
              {" "}
              · at most until <Moment at={until} />
            </>
          )}
        </span>
      </div>
      {message === undefined ? null : <p className="text-sm foreign">{visible(message)}</p>}
      {question !== undefined ? (
        <p className="text-sm text-soft">
          kit has judged the work, and asks whether the task is done.{" "}
          <Link to="/console/runs/$runId" params={{ runId: run_id }} className="text-accent underline">
            Look at the change and decide
          </Link>
        </p>
      ) : payload_start === undefined ? null : (
        <p className="font-mono text-soft text-xs foreign">{visible(payload_start)}</p>
      )}
      {isReadOnly || question !== undefined ? null : (
        <SignalForm runId={run_id} name={signal} schema={schema} />
      )}
    </li>
  );
}

function ApprovalCard({ approval }: { readonly approval: ApprovalRequest }): ReactNode {
  const { agent, instance_id, session, tool, requested_at, expires_at } = approval;
  return (
    <li className="flex min-w-0 flex-col gap-3 rounded-lg border border-line bg-panel p-4">
      <div className="flex flex-wrap items-baseline gap-x-2 gap-y-1 text-sm">
        <h2 className="font-mono font-semibold text-sm foreign">{visible(tool)}</h2>
        <span className="text-soft">
          asked by{" "}
          <Link
            to="/console/agents/$name/$id"
            params={{ name: agent, id: instance_id }}
            search={session === "default" ? {} : { session }}
            className="text-accent underline"
          >
            <bdi>
              {agent} / {instance_id}
            </bdi>
          </Link>
        </span>
        <span className="ml-auto text-faint text-xs">
          <Age at={requested_at} />
          {expires_at === undefined ? null : (
            <>
              {" "}
              · denied <Age at={expires_at} />
            </>
          )}
        </span>
      </div>
      <WaitingCall call={approval} />
      <AppliesTo paths={touchedBy(approval)} />
      <Decision call={approval} />
    </li>
  );
}
