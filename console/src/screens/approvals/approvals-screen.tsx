import { useInfiniteQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import type { ReactNode } from "react";
import type { ApprovalRequest } from "../../../../src/client/index.ts";
import { asked, useClient } from "../../api/use-server.ts";
import { Button } from "../../ui/button.tsx";
import { Decision } from "../../ui/decision.tsx";
import { Body, Page } from "../../ui/page.tsx";
import { ErrorNotice, Loading, Notice } from "../../ui/states.tsx";
import { visible } from "../../ui/text.ts";
import { Age } from "../../ui/time.tsx";
import { AppliesTo, CallPreview, touchedBy } from "./touched-files.tsx";

/** The calls of all agents that wait for approval, the oldest first. */
export function ApprovalsScreen(): ReactNode {
  const client = useClient();
  const approvals = useInfiniteQuery({
    queryKey: ["approvals", "pages"],
    queryFn: ({ pageParam, signal }) =>
      asked(client, () => client.approvals.list({ limit: 50, cursor: pageParam }, { signal })),
    initialPageParam: undefined as string | undefined,
    getNextPageParam: (page) => page.next_cursor,
    refetchInterval: 4_000,
  });
  const waiting = approvals.data?.pages.flatMap((page) => page.approvals);
  return (
    <Page title="Approvals">
      <Body>
        {waiting === undefined ? (
          approvals.isError ? (
            <ErrorNotice error={approvals.error} onRetry={() => void approvals.refetch()} />
          ) : (
            <Loading />
          )
        ) : waiting.length === 0 ? (
          <Notice icon="approvals" title="Nothing waits for you">
            Calls of tools that need an approval stand here until a person decides, and in the tab&apos;s
            title.
          </Notice>
        ) : (
          <>
            <ul className="flex flex-col gap-4">
              {waiting.map((approval) => (
                <ApprovalCard key={approval.approval_id} approval={approval} />
              ))}
            </ul>
            {approvals.hasNextPage ? (
              <Button isBusy={approvals.isFetchingNextPage} onClick={() => void approvals.fetchNextPage()}>
                Show more
              </Button>
            ) : null}
          </>
        )}
      </Body>
    </Page>
  );
}

function ApprovalCard({ approval }: { readonly approval: ApprovalRequest }): ReactNode {
  const { approval_id, agent, instance_id, session, tool, args, requested_at, expires_at, input_schema } =
    approval;
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
      <CallPreview approval={approval} />
      <AppliesTo paths={touchedBy(approval)} />
      <Decision
        agent={agent}
        instance={instance_id}
        approval_id={approval_id}
        args={args}
        inputSchema={input_schema}
      />
    </li>
  );
}
