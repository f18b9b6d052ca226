import { Link, type LinkProps } from "@tanstack/react-router";
import type { ReactNode } from "react";
import type { Overview } from "../../../../src/client/index.ts";
import { useServer } from "../../api/use-server.ts";
import { Body, Page, Panel } from "../../ui/page.tsx";
import { Answer, Notice } from "../../ui/states.tsx";
import { FileQuestion } from "./file-question.tsx";
import { RepositoryState } from "./repository-state.tsx";
import { useWork, Waiting, Work } from "./work.tsx";

/** The first screen: the rules of a file, what waits or failed, and what the repository has and lacks. */
export function HomeScreen(): ReactNode {
  const overview = useServer({
    key: ["overview"],
    ask: (client, signal) => client.overview({ signal }),
    everyMs: 30_000,
  });
  const agents = overview.data?.agents ?? [];
  const work = useWork(agents.length > 0);
  return (
    <Page title="Home">
      <Body>
        <FileQuestion />
        <Answer query={overview}>
          {(found) => (
            <>
              <Figures overview={found} />
              <div className="grid items-start gap-6 lg:grid-cols-2">
                {found.agents === undefined ? null : found.agents.length === 0 ? (
                  <div className="flex min-w-0 flex-col gap-6">
                    {/* A run can wait although no agent is served. */}
                    {(work.inbox.data?.total ?? 0) > 0 ? <Waiting inbox={work.inbox} /> : null}
                    <FirstAgent />
                  </div>
                ) : (
                  <Work work={work} agent={found.agents[0] ?? ""} />
                )}
                {/* Below the work, it appears with it, so that nothing moves it. */}
                <div className={work.isPending ? "hidden min-w-0 lg:block" : "min-w-0"}>
                  <RepositoryState />
                </div>
              </div>
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
  const figures: readonly { label: string; value: number; link: NonNullable<LinkProps["to"]> }[] = [
    { label: specs === 1 ? "spec" : "specs", value: specs, link: "/console/specs" },
    {
      label: guidelines === 1 ? "guideline" : "guidelines",
      value: guidelines,
      link: "/console/guidelines",
    },
    ...(agents === undefined
      ? []
      : [
          {
            label: agents.length === 1 ? "agent" : "agents",
            value: agents.length,
            link: "/console/agents" as const,
          },
        ]),
    ...(workflows === undefined
      ? []
      : [
          {
            label: workflows.length === 1 ? "workflow" : "workflows",
            value: workflows.length,
            link: "/console/runs" as const,
          },
        ]),
  ];
  return (
    <Panel>
      <dl className="grid grid-cols-2 divide-line md:grid-cols-4 md:divide-x">
        {figures.map(({ label, value, link }) => (
          <div
            key={label}
            className="relative flex flex-row-reverse items-baseline justify-end gap-2 px-4 py-3"
          >
            <dt className="text-soft text-sm">
              <Link to={link} className="after:absolute after:inset-0 hover:underline">
                {label}
              </Link>
            </dt>
            <dd className="font-semibold text-xl tabular">{value.toLocaleString()}</dd>
          </div>
        ))}
      </dl>
      {indexing === undefined ? null : (
        <p className="border-line border-t px-4 py-2 text-soft text-sm">
          Reading the project: {indexing.done} of {indexing.total} files.
        </p>
      )}
    </Panel>
  );
}

function FirstAgent(): ReactNode {
  return (
    <Panel title="Agents">
      <Notice icon="agents" title="There are no agents yet">
        A file in <code className="font-mono">src/agents</code> that exports{" "}
        <code className="font-mono">createAgent(…)</code> is one.
      </Notice>
    </Panel>
  );
}
