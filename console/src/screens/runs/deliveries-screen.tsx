import { Link, useNavigate, useSearch } from "@tanstack/react-router";
import type { ReactNode } from "react";
import type { Delivery, DeliveryOutcome, DeliveryPage } from "../../../../src/client/index.ts";
import { Chip } from "../../ui/chips.tsx";
import { Filter } from "../../ui/filter.tsx";
import { Listing, useList } from "../../ui/listing.tsx";
import { Page } from "../../ui/page.tsx";
import { Notice } from "../../ui/states.tsx";
import { formatDuration, formatTokens, visible } from "../../ui/text.ts";
import { Age } from "../../ui/time.tsx";
import { DispatchLink, RunLink } from "./cause-link.tsx";
import { RunTabs } from "./run-tabs.tsx";

const outcomes: readonly DeliveryOutcome[] = ["accepted", "refused", "failed", "open"];

/** Deliveries of webhooks, the newest first: accepted and refused. */
export function DeliveriesScreen(): ReactNode {
  const { webhook, delivery_id, outcome } = useSearch({ from: "/console/deliveries" });
  const navigate = useNavigate({ from: "/console/deliveries" });
  const chosen = outcomes.find((one) => one === outcome);
  const deliveries = useList<DeliveryPage>({
    key: ["deliveries", webhook, delivery_id, chosen],
    ask: (client, { cursor, signal }) =>
      client.deliveries.list({ webhook, delivery_id, outcome: chosen, cursor, limit: 100 }, { signal }),
    everyMs: 5_000,
  });
  const list = deliveries.data?.pages.flatMap((page) => page.deliveries);
  const webhooks = new Set([
    ...(webhook === undefined ? [] : [webhook]),
    ...(list ?? []).map((one) => one.webhook),
  ]);
  const change = (filter: Readonly<Record<string, string | undefined>>) =>
    void navigate({ search: (old) => ({ ...old, ...filter }), replace: true });
  return (
    <Page
      title="Deliveries"
      isFixed
      tabs={<RunTabs />}
      bar={
        <>
          <Filter
            label="Outcome"
            value={chosen}
            choices={outcomes}
            onChange={(value) => change({ outcome: value })}
          />
          <Filter
            label="Webhook"
            value={webhook}
            choices={[...webhooks].sort()}
            onChange={(value) => change({ webhook: value })}
          />
          {delivery_id === undefined ? null : (
            <button
              type="button"
              className="h-8 max-w-64 truncate rounded-md border border-line bg-panel px-2 text-sm"
              title={visible(delivery_id)}
              onClick={() => change({ delivery_id: undefined })}
            >
              Delivery <bdi className="font-mono">{visible(delivery_id)}</bdi> ✕
            </button>
          )}
        </>
      }
    >
      <Listing
        list={deliveries}
        itemsIn={(page) => page.deliveries}
        keyOf={({ record_id }: Delivery) => record_id}
        label="Deliveries"
        nouns={["delivery", "deliveries"]}
        empty={
          delivery_id !== undefined ? (
            <Notice icon="dispatches" title="The record of this delivery was deleted">
              Deliveries are kept as long as ended work, the newest 10,000 of each webhook. What it began
              stays in the records of runs and dispatches.{" "}
              <Link to="/console/deliveries" className="text-accent underline">
                All deliveries
              </Link>
            </Notice>
          ) : chosen !== undefined || webhook !== undefined ? (
            <Notice icon="dispatches" title="No delivery matches">
              Other filters may find some.
            </Notice>
          ) : (
            <Notice icon="dispatches" title="No webhook was delivered yet">
              Files in <code className="font-mono">src/webhooks</code> take signed deliveries. Each is listed
              here, refused ones too.
            </Notice>
          )
        }
      >
        {(one) => <DeliveryRow delivery={one} />}
      </Listing>
    </Page>
  );
}

function DeliveryRow({
  delivery: {
    webhook,
    received_at,
    outcome,
    status,
    duration_ms,
    bytes,
    delivery_id,
    node,
    dispatches,
    runs,
    error,
  },
}: {
  readonly delivery: Delivery;
}): ReactNode {
  return (
    <div className="flex min-h-13 items-center gap-3 px-4 py-1.5 text-sm">
      <span className="w-12 shrink-0">
        <Chip tone={toneOf[outcome]}>{status ?? outcome}</Chip>
      </span>
      <span className="min-w-0 flex-1">
        <span className="block truncate">
          <bdi className="font-medium">{visible(webhook)}</bdi>
          {delivery_id === undefined ? null : (
            <Link
              to="/console/deliveries"
              search={{ webhook, delivery_id }}
              title="All attempts of this delivery"
              className="ml-2 font-mono text-faint text-xs"
            >
              <bdi>{visible(delivery_id)}</bdi>
            </Link>
          )}
        </span>
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
          {outcome === "open" && "No reply yet, or its process ended before one."}
        </span>
      </span>
      <span className="hidden w-32 text-right text-faint text-xs tabular sm:block">
        <span className="block">
          {formatTokens(bytes)} bytes{duration_ms === undefined ? "" : `, ${formatDuration(duration_ms)}`}
        </span>
        {node === undefined ? null : (
          <span className="block truncate font-mono" title={`Received by the node ${visible(node)}`}>
            {visible(node)}
          </span>
        )}
      </span>
      <span className="w-20 text-right text-faint text-xs">
        <Age at={received_at} />
      </span>
    </div>
  );
}

const toneOf = { accepted: "good", refused: "warn", failed: "bad", open: "plain" } as const;
