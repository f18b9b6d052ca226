import { useInfiniteQuery } from "@tanstack/react-query";
import { Link, useSearch } from "@tanstack/react-router";
import type { ReactNode } from "react";
import type { Delivery } from "../../../../src/client/index.ts";
import { asked, useClient } from "../../api/use-server.ts";
import { Chip } from "../../ui/chips.tsx";
import { Page } from "../../ui/page.tsx";
import { askForMore, Rows } from "../../ui/rows.tsx";
import { ErrorNotice, Loading, Notice } from "../../ui/states.tsx";
import { formatDuration, formatTokens, visible } from "../../ui/text.ts";
import { Age } from "../../ui/time.tsx";
import { DispatchLink, RunLink } from "./cause-link.tsx";
import { RunTabs } from "./run-tabs.tsx";

/** Deliveries of webhooks, the newest first: accepted and refused. */
export function DeliveriesScreen(): ReactNode {
  const client = useClient();
  const { webhook, delivery_id } = useSearch({ from: "/console/deliveries" });
  const deliveries = useInfiniteQuery({
    queryKey: ["deliveries", webhook, delivery_id],
    queryFn: ({ pageParam, signal }) =>
      asked(client, () =>
        client.deliveries.list({ webhook, delivery_id, cursor: pageParam, limit: 100 }, { signal }),
      ),
    initialPageParam: undefined as string | undefined,
    getNextPageParam: (page) => page.next_cursor,
    refetchInterval: 5_000,
  });
  const list = deliveries.data?.pages.flatMap((page) => page.deliveries);
  return (
    <Page title="Deliveries" isFixed bar={<RunTabs />}>
      {list === undefined ? (
        deliveries.isError ? (
          <ErrorNotice error={deliveries.error} onRetry={() => void deliveries.refetch()} />
        ) : (
          <Loading />
        )
      ) : list.length === 0 && delivery_id !== undefined ? (
        <Notice icon="dispatches" title="This delivery is not listed any more">
          The last 1,000 deliveries are listed. What it began stays in the records of runs and dispatches.{" "}
          <Link to="/console/deliveries" className="text-accent underline">
            All deliveries
          </Link>
        </Notice>
      ) : list.length === 0 ? (
        <Notice icon="dispatches" title="No webhook was delivered yet">
          Files in <code className="font-mono">src/webhooks</code> take signed deliveries. What came since the
          server started stands here, refused ones too.
        </Notice>
      ) : (
        <Rows
          items={list}
          keyOf={(one) => `${one.received_at} ${one.webhook} ${one.bytes} ${one.duration_ms}`}
          label="Deliveries"
          onEnd={() => askForMore(deliveries)}
        >
          {(one) => <DeliveryRow delivery={one} />}
        </Rows>
      )}
    </Page>
  );
}

function DeliveryRow({
  delivery: { webhook, received_at, status, duration_ms, bytes, dispatches, runs, error },
}: {
  readonly delivery: Delivery;
}): ReactNode {
  return (
    <div className="flex min-h-13 items-center gap-3 px-4 py-1.5 text-sm">
      <span className="w-12 shrink-0">
        <Chip tone={status < 300 ? "good" : status < 500 ? "warn" : "bad"}>{status}</Chip>
      </span>
      <span className="min-w-0 flex-1">
        <bdi className="font-medium">{visible(webhook)}</bdi>
        <span className="block truncate text-faint text-xs">
          {runs.map((id) => (
            <span key={id} className="mr-2">
              <RunLink id={id} />
            </span>
          ))}
          {dispatches.map((id) => (
            <span key={id} className="mr-2">
              <DispatchLink id={id} />
            </span>
          ))}
          {error && visible(`${error.type}: ${error.message}`.slice(0, 300))}
        </span>
      </span>
      <span className="hidden w-24 text-right text-faint text-xs tabular sm:block">
        {formatTokens(bytes)} bytes, {formatDuration(duration_ms)}
      </span>
      <span className="w-20 text-right text-faint text-xs">
        <Age at={received_at} />
      </span>
    </div>
  );
}
