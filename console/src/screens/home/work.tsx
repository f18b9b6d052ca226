import { Link, type LinkProps } from "@tanstack/react-router";
import type { ReactNode } from "react";
import { useServer } from "../../api/use-server.ts";
import { Panel } from "../../ui/page.tsx";
import { Answer, Loading, Notice } from "../../ui/states.tsx";
import { NewConversation } from "../agents/begin-conversation.tsx";
import { SessionRow } from "../agents/session-row.tsx";
import { InboxRow, keyOfItem } from "../approvals/inbox-row.tsx";
import { useInbox } from "../approvals/use-inbox.ts";
import { DispatchRow } from "../runs/dispatch-row.tsx";
import { RunRow } from "../runs/run-row.tsx";

const mostRows = 5;
/** The number of failures of each kind; the links above them lead to all. */
const mostFailures = 3;
const moreStyle = "text-accent text-sm hover:underline";

/** Loads the work that waits for a person, the work that failed, and the last conversations. */
export function useWork(enabled: boolean) {
  const inbox = useInbox(enabled);
  const failures = useServer({
    key: ["runs", "home", "failed"],
    ask: async (client, signal) => {
      const filter = { status: "failed", limit: mostFailures, count: true } as const;
      const [sessions, runs, dispatches] = await Promise.all([
        client.sessions.list({ ...filter, order: "recent", parents_only: true }, { signal }),
        client.runs.list(filter, { signal }),
        client.dispatches.list(filter, { signal }),
      ]);
      return { sessions, runs, dispatches };
    },
    everyMs: 6_000,
    enabled,
  });
  const sessions = useServer({
    key: ["sessions", "home"],
    ask: (client, signal) =>
      client.sessions.list({ order: "recent", parents_only: true, limit: mostRows }, { signal }),
    everyMs: 4_000,
    enabled,
  });
  // All at once, so that no panel moves another.
  const isPending = enabled && (inbox.isPending || failures.isPending || sessions.isPending);
  return { inbox, failures, sessions, isPending };
}

interface WorkProps {
  readonly work: ReturnType<typeof useWork>;
  readonly agent: string;
}

/** Shows that work. */
export function Work({ work: { inbox, failures, sessions, isPending }, agent }: WorkProps): ReactNode {
  if (isPending)
    return (
      <Panel title="Waiting for you">
        <Loading />
      </Panel>
    );
  return (
    <div className="flex min-w-0 flex-col gap-6">
      <Waiting inbox={inbox} />
      <Answer query={failures}>
        {({
          sessions: broken,
          runs: { runs, total: allRuns },
          dispatches: { dispatches, total: allDispatches },
        }) =>
          broken.sessions.length + runs.length + dispatches.length === 0 ? null : (
            <Panel
              title="Failed"
              actions={
                <>
                  <More
                    link={{ to: "/console/agents", search: { status: "failed" } }}
                    count={broken.total ?? broken.sessions.length}
                    nouns={["conversation", "conversations"]}
                  />
                  <More
                    link={{ to: "/console/runs", search: { status: "failed" } }}
                    count={allRuns ?? runs.length}
                    nouns={["run", "runs"]}
                  />
                  <More
                    link={{ to: "/console/dispatches", search: { status: "failed" } }}
                    count={allDispatches ?? dispatches.length}
                    nouns={["dispatch", "dispatches"]}
                  />
                </>
              }
            >
              <ul className="divide-y divide-line">
                {broken.sessions.map((one) => (
                  <li key={`${one.agent}/${one.instance_id}/${one.session}`}>
                    <SessionRow session={one} />
                  </li>
                ))}
                {runs.map((run) => (
                  <li key={run.run_id}>
                    <RunRow run={run} />
                  </li>
                ))}
                {dispatches.map((one) => (
                  <li key={one.dispatch_id}>
                    <DispatchRow dispatch={one} />
                  </li>
                ))}
              </ul>
            </Panel>
          )
        }
      </Answer>
      <Answer query={sessions}>
        {({ sessions: listed }) => {
          return (
            <Panel
              title="Conversations"
              actions={
                <Link to="/console/agents" className={moreStyle}>
                  All conversations
                </Link>
              }
            >
              {listed.length === 0 ? (
                <Notice icon="agents" title="Nothing has happened yet">
                  <NewConversation agent={agent} label={`Talk to ${agent}`} />
                </Notice>
              ) : (
                <ul className="divide-y divide-line">
                  {listed.map((one) => (
                    <li key={`${one.agent}/${one.instance_id}/${one.session}`}>
                      <SessionRow session={one} />
                    </li>
                  ))}
                </ul>
              )}
            </Panel>
          );
        }}
      </Answer>
    </div>
  );
}

/** Lists the first calls and runs that wait for a person. */
export function Waiting({ inbox }: Pick<WorkProps["work"], "inbox">): ReactNode {
  return (
    <Answer query={inbox}>
      {({ items, total }) => (
        <Panel
          title="Waiting for you"
          count={total}
          actions={
            total === 0 ? null : (
              <Link to="/console/approvals" className={moreStyle}>
                Decide
              </Link>
            )
          }
        >
          {items.length === 0 ? (
            <p className="px-4 py-3 text-soft text-sm">Nothing waits for you.</p>
          ) : (
            <ul className="divide-y divide-line">
              {items.map((item) => (
                <li key={keyOfItem(item)}>
                  <InboxRow item={item} />
                </li>
              ))}
            </ul>
          )}
        </Panel>
      )}
    </Answer>
  );
}

/** A link to all items of a kind that failed, with their number. */
function More({
  link,
  count,
  nouns: [one, several],
}: {
  readonly link: LinkProps;
  readonly count: number;
  readonly nouns: readonly [string, string];
}): ReactNode {
  if (count === 0) return null;
  return (
    <Link {...link} className={moreStyle}>
      {`${count.toLocaleString()} ${count === 1 ? one : several}`}
    </Link>
  );
}
