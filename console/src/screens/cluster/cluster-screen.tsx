import type { ReactNode } from "react";
import type { ClusterState } from "../../../../src/client/index.ts";
import { useServer } from "../../api/use-server.ts";
import { Chip, type Tone } from "../../ui/chips.tsx";
import { Facts } from "../../ui/facts.tsx";
import { Body, Page, Panel } from "../../ui/page.tsx";
import { Answer } from "../../ui/states.tsx";
import { formatDuration, visible } from "../../ui/text.ts";
import { Age } from "../../ui/time.tsx";

type Node = ClusterState["nodes"][number];

const tones: Readonly<Record<Node["state"], Tone>> = { working: "good", draining: "warn", silent: "bad" };

/** The nodes that share the work, what they do, and what is wrong with them. */
export function ClusterScreen(): ReactNode {
  const cluster = useServer({
    key: ["cluster"],
    ask: (client, signal) => client.cluster({ signal }),
    everyMs: 3_000,
  });
  return (
    <Page title="Cluster">
      <Body>
        <Answer query={cluster}>{(state) => <Nodes state={state} />}</Answer>
      </Body>
    </Page>
  );
}

function Nodes({ state }: { readonly state: ClusterState }): ReactNode {
  const { nodes, problems } = state;
  return (
    <>
      {problems.length === 0 ? null : (
        <Panel title="Needs attention" count={problems.length}>
          <ul className="divide-y divide-line">
            {problems.map(({ code, message, hint, node }) => (
              <li key={`${code} ${node} ${message}`} className="flex items-start gap-3 px-4 py-2 text-sm">
                <span
                  className="mt-1.5 size-2 shrink-0 rounded-full bg-warn"
                  role="img"
                  aria-label="warning"
                />
                <span className="min-w-0 flex-1">
                  <span className="block foreign">{visible(message)}</span>
                  {hint === undefined ? null : (
                    <span className="block text-faint text-xs foreign">{visible(hint)}</span>
                  )}
                </span>
              </li>
            ))}
          </ul>
        </Panel>
      )}
      <Panel title="Work">
        <Facts
          facts={{
            Engine: `${state.engine}${state.distributed ? ", shared by several machines" : ", one process does all"}`,
            Inputs: `${state.running_dispatches.toLocaleString()} at work, ${state.queued_dispatches.toLocaleString()} wait`,
            Runs: `${state.running_runs.toLocaleString()} at work, ${state.queued_runs.toLocaleString()} to begin, ${state.waiting_runs.toLocaleString()} wait for a time or a signal`,
            "Dead letters": state.dead_letters.toLocaleString(),
            "Oldest that waits": state.oldest_queued_at && <Age at={state.oldest_queued_at} />,
            Shards: state.distributed
              ? `${state.shards}${state.unowned_shards === 0 ? "" : `, ${state.unowned_shards} without a node`}`
              : undefined,
          }}
        />
      </Panel>
      <Panel title="Nodes" count={nodes.length}>
        <ul className="divide-y divide-line">
          {nodes.map((node) => (
            <li key={node.node} className="flex flex-wrap items-center gap-x-4 gap-y-1 px-4 py-2 text-sm">
              <span className="w-20 shrink-0">
                <Chip tone={tones[node.state]}>{node.state}</Chip>
              </span>
              <span className="min-w-48 flex-1">
                <bdi className="font-medium">{visible(node.host)}</bdi>
                {node.is_this ? <span className="text-soft"> · answers you</span> : null}
                <span className="block truncate font-mono text-faint text-xs">
                  {node.address ?? node.node}
                </span>
              </span>
              <span className="text-soft tabular">kit {node.version}</span>
              <span className="tabular">
                {node.running.toLocaleString()} at work, {node.queued.toLocaleString()} wait
              </span>
              {state.distributed ? <span className="text-soft tabular">{node.shards} shards</span> : null}
              <span className="w-full text-faint text-xs sm:w-auto">
                since <Age at={node.started_at} />, heard {formatDuration(node.beat_age_ms)} ago
                {node.clock_ahead_ms === undefined || Math.abs(node.clock_ahead_ms) < 500
                  ? ""
                  : `, clock off by ${formatDuration(Math.abs(node.clock_ahead_ms))}`}
              </span>
            </li>
          ))}
        </ul>
      </Panel>
    </>
  );
}
