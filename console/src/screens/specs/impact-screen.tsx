import { Link, useNavigate, useSearch } from "@tanstack/react-router";
import { lazy, type ReactNode, Suspense } from "react";
import { useServer } from "../../api/use-server.ts";
import { BarField } from "../../ui/chips.tsx";
import { Body, Page, Panel } from "../../ui/page.tsx";
import { Answer, Loading, Notice } from "../../ui/states.tsx";
import { SpecTabs } from "./spec-tabs.tsx";

const SpecGraph = lazy(async () => ({ default: (await import("./spec-graph.tsx")).SpecGraph }));

/** The blocks, tests and files that a change of files affects, with the path to each. */
export function ImpactScreen(): ReactNode {
  const { files = "" } = useSearch({ from: "/console/specs/impact" });
  const navigate = useNavigate();
  const changed = files.split(/[\s,]+/).filter((path) => path !== "");
  const impact = useServer({
    key: ["impact", changed],
    enabled: changed.length > 0,
    ask: (client, signal) => client.specs.impact({ files: changed, limit: 200 }, { signal }),
  });
  return (
    <Page
      title="Impact"
      crumbs={[{ label: "Specs", link: { to: "/console/specs" } }]}
      bar={
        <>
          <SpecTabs />
          <BarField
            label="Changed files, such as src/app.ts"
            value={files}
            onSubmit={(text) =>
              void navigate({ to: "/console/specs/impact", search: { files: text || undefined } })
            }
          />
        </>
      }
    >
      <Body>
        {changed.length === 0 ? (
          <Notice icon="branch" title="Which files change?">
            Name files of the repository: this page draws the specs, tests and files that they affect.
          </Notice>
        ) : (
          <Answer query={impact}>
            {({ affected, total_count, tests }) =>
              total_count === 0 ? (
                <Notice icon="check" title="No spec names these files">
                  Nothing in the specs of this repository leads to them.
                </Notice>
              ) : (
                <>
                  <Panel title="Paths">
                    <Suspense fallback={<Loading />}>
                      <SpecGraph
                        edges={affected.flatMap(({ path }) => path)}
                        roots={changed}
                        specs={affected.map(({ id }) => id)}
                      />
                    </Suspense>
                  </Panel>
                  <Panel title="Affected blocks" count={total_count}>
                    <ul className="divide-y divide-line">
                      {affected.map(({ id, score, path }) => (
                        <li key={id} className="flex flex-col gap-0.5 px-4 py-2 text-sm">
                          <div className="flex items-baseline gap-3">
                            <Link
                              to="/console/specs/$id"
                              params={{ id }}
                              className="min-w-0 text-accent hover:underline foreign"
                            >
                              {id}
                            </Link>
                            <span className="ml-auto text-faint text-xs tabular">
                              {Math.round(score * 100)} %
                            </span>
                          </div>
                          <p className="text-faint text-xs foreign">
                            {path.map(({ from, kind }) => `${from} —${kind}→ `).join("")}
                          </p>
                        </li>
                      ))}
                    </ul>
                  </Panel>
                  {tests.length === 0 ? null : (
                    <Panel title="Tests to run" count={tests.length}>
                      <ul className="flex flex-col gap-1 p-4 font-mono text-xs">
                        {tests.map((path) => (
                          <li key={path} className="foreign">
                            {path}
                          </li>
                        ))}
                      </ul>
                    </Panel>
                  )}
                </>
              )
            }
          </Answer>
        )}
      </Body>
    </Page>
  );
}
