import { Link, type LinkProps } from "@tanstack/react-router";
import type { ReactNode } from "react";
import type { Overview } from "../../../../src/client/index.ts";
import { isReadOnly } from "../../api/server.ts";
import { useServer } from "../../api/use-server.ts";
import { Body, Page, Panel } from "../../ui/page.tsx";
import { Answer, Notice } from "../../ui/states.tsx";
import { visible } from "../../ui/text.ts";
import { SessionRow } from "../agents/agents-screen.tsx";
import { DispatchRow } from "../runs/dispatches-screen.tsx";
import { RunRow } from "../runs/runs-screen.tsx";
import { FindingList } from "../server/finding-list.tsx";
import { CriteriaSummary } from "../specs/criteria-summary.tsx";

/** The first screen: work that runs, waits for a person or failed, and the size of the project. */
export function HomeScreen(): ReactNode {
  const overview = useServer({
    key: ["overview"],
    ask: (client, signal) => client.overview({ signal }),
    everyMs: 30_000,
  });
  return (
    <Page title="Home">
      <Body>
        <Answer query={overview}>
          {(found) => (
            <>
              <Figures overview={found} />
              {found.agents === undefined ? null : found.agents.length === 0 ? (
                <FirstSteps />
              ) : (
                <Work agent={found.agents[0] ?? ""} />
              )}
              <CriteriaSummary />
              <DoctorFindings />
              <Findings />
            </>
          )}
        </Answer>
      </Body>
    </Page>
  );
}

function Figures({
  overview: { specs, guidelines, agents, workflows, indexing },
}: {
  readonly overview: Overview;
}): ReactNode {
  return (
    <Panel>
      <dl className="grid grid-cols-2 divide-line md:grid-cols-4 md:divide-x">
        <Figure label={specs === 1 ? "spec" : "specs"} value={specs} link="/console/specs" />
        <Figure
          label={guidelines === 1 ? "guideline" : "guidelines"}
          value={guidelines}
          link="/console/guidelines"
        />
        {agents === undefined ? null : (
          <Figure
            label={agents.length === 1 ? "agent" : "agents"}
            value={agents.length}
            link="/console/agents"
          />
        )}
        {workflows === undefined ? null : (
          <Figure
            label={workflows.length === 1 ? "workflow" : "workflows"}
            value={workflows.length}
            link="/console/runs"
          />
        )}
      </dl>
      {indexing === undefined ? null : (
        <p className="border-line border-t px-4 py-2 text-soft text-sm">
          Reading the project: {indexing.done} of {indexing.total} files.
        </p>
      )}
    </Panel>
  );
}

function Figure({
  label,
  value,
  link,
}: {
  readonly label: string;
  readonly value: number;
  readonly link?: LinkProps["to"];
}): ReactNode {
  return (
    <div className="relative flex flex-col-reverse px-4 py-3">
      <dt className="text-soft text-sm">
        {link === undefined ? (
          label
        ) : (
          <Link to={link} className="after:absolute after:inset-0 hover:underline">
            {label}
          </Link>
        )}
      </dt>
      <dd className="font-semibold text-xl tabular">{value.toLocaleString()}</dd>
    </div>
  );
}

function Work({ agent }: { readonly agent: string }): ReactNode {
  const sessions = useServer({
    key: ["sessions", "home"],
    ask: (client, signal) => client.sessions.list({ order: "newest", limit: 100 }, { signal }),
    everyMs: 4_000,
  });
  const runs = useServer({
    key: ["runs", "home", "failed"],
    ask: (client, signal) => client.runs.list({ status: "failed", limit: 5 }, { signal }),
    everyMs: 6_000,
  });
  const dispatches = useServer({
    key: ["dispatches", "home", "failed"],
    ask: (client, signal) => client.dispatches.list({ status: "failed", limit: 5 }, { signal }),
    everyMs: 6_000,
  });
  return (
    <>
      <Answer query={sessions}>
        {({ sessions: all }) => {
          const own = all.filter(({ parent }) => parent === undefined);
          const active = own
            .filter(({ status }) => status !== "idle")
            .toSorted((left, right) => right.status.localeCompare(left.status));
          const listed = active.length > 0 ? active : own.slice(0, 5);
          return (
            <Panel
              title={active.length > 0 ? "At work, or waiting for you" : "Recent conversations"}
              count={listed.length}
            >
              {listed.length === 0 ? (
                <Notice icon="agents" title="Nothing has happened yet">
                  {isReadOnly ? null : (
                    <Link
                      to="/console/agents/$name"
                      params={{ name: agent }}
                      className="text-accent underline"
                    >
                      Talk to {agent}
                    </Link>
                  )}
                </Notice>
              ) : (
                <ul className="divide-y divide-line">
                  {listed.map((one) => (
                    <SessionRow key={`${one.agent}/${one.instance_id}/${one.session}`} session={one} />
                  ))}
                </ul>
              )}
            </Panel>
          );
        }}
      </Answer>
      {(runs.data?.runs.length ?? 0) + (dispatches.data?.dispatches.length ?? 0) === 0 ? null : (
        <Panel
          title="Failed"
          actions={
            <Link
              to="/console/runs"
              search={{ status: "failed" }}
              className="text-accent text-sm hover:underline"
            >
              All failed runs
            </Link>
          }
        >
          <ul className="divide-y divide-line">
            {runs.data?.runs.map((run) => (
              <li key={run.run_id}>
                <RunRow run={run} />
              </li>
            ))}
            {dispatches.data?.dispatches.map((one) => (
              <li key={one.dispatch_id}>
                <DispatchRow dispatch={one} />
              </li>
            ))}
          </ul>
        </Panel>
      )}
    </>
  );
}

function FirstSteps(): ReactNode {
  return (
    <Panel title="First steps">
      <ol className="flex list-decimal flex-col gap-2 p-4 pl-9 text-sm">
        <li>
          <code className="font-mono text-xs">kit init</code> writes a first agent into{" "}
          <code className="font-mono text-xs">src/agents</code>.
        </li>
        <li>
          <code className="font-mono text-xs">kit add</code> lists the providers of models and adds one.
        </li>
        <li>
          <code className="font-mono text-xs">kit doctor</code> says whether all is there.
        </li>
      </ol>
    </Panel>
  );
}

/** Problems that the doctor finds, for callers who may read the server. */
function DoctorFindings(): ReactNode {
  const server = useServer({
    key: ["server"],
    ask: (client, signal) => client.server({ signal }),
    everyMs: 60_000,
  });
  const bad = server.data?.findings.filter(({ status }) => status !== "ok") ?? [];
  if (bad.length === 0) return null;
  return (
    <Panel
      title="Needs attention"
      count={bad.length}
      actions={
        <Link to="/console/server" className="text-accent text-sm hover:underline">
          All checks
        </Link>
      }
    >
      <FindingList findings={bad} />
    </Panel>
  );
}

/** The diagnostics of the specs, as far as the index has them. */
function Findings(): ReactNode {
  const diagnostics = useServer({
    key: ["diagnostics"],
    ask: (client, signal) => client.specs.diagnostics({ signal }),
    everyMs: 30_000,
  });
  return (
    <Answer query={diagnostics} loading={null}>
      {(list) => (
        <Panel title="Findings in specs and rules" count={list.length}>
          {list.length === 0 ? (
            <p className="p-4 text-soft text-sm">Nothing is wrong.</p>
          ) : (
            <ul className="divide-y divide-line">
              {list.slice(0, 8).map(({ severity, message, path, line, rule }) => (
                <li
                  key={`${path}:${line}:${rule}:${message}`}
                  className="flex items-start gap-3 px-4 py-2 text-sm"
                >
                  <span
                    className={`mt-1.5 size-2 shrink-0 rounded-full ${severity === "error" ? "bg-bad" : "bg-warn"}`}
                    role="img"
                    aria-label={severity}
                  />
                  <span className="min-w-0 flex-1">
                    <span className="block foreign">{visible(message)}</span>
                    <span className="font-mono text-faint text-xs foreign">
                      {path}
                      {line === undefined ? "" : `:${line}`}
                    </span>
                  </span>
                </li>
              ))}
            </ul>
          )}
        </Panel>
      )}
    </Answer>
  );
}
