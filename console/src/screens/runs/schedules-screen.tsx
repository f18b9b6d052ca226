import { Link } from "@tanstack/react-router";
import type { ReactNode } from "react";
import { useServer } from "../../api/use-server.ts";
import { Code } from "../../ui/code.tsx";
import { Body, Page, Panel } from "../../ui/page.tsx";
import { Answer, Notice } from "../../ui/states.tsx";
import { visible } from "../../ui/text.ts";
import { Moment } from "../../ui/time.tsx";
import { RunTabs } from "./run-tabs.tsx";
import { StartRun } from "./start-run.tsx";

/** The schedules of workflows, the next one first. */
export function SchedulesScreen(): ReactNode {
  const schedules = useServer({
    key: ["schedules"],
    ask: (client, signal) => client.workflows.schedules({ signal }),
    everyMs: 15_000,
  });
  return (
    <Page title="Schedules" tabs={<RunTabs />}>
      <Body>
        <Answer query={schedules}>
          {(list) =>
            list.length === 0 ? (
              <Notice icon="wait" title="No workflow has a schedule">
                A workflow that exports <code className="font-mono">schedule</code> appears here with its next
                times.
              </Notice>
            ) : (
              <Panel title="Schedules" count={list.length}>
                <ul className="divide-y divide-line">
                  {list
                    .toSorted((one, other) => ((one.next_at ?? "~") < (other.next_at ?? "~") ? -1 : 1))
                    .map(({ name, workflow, cron, timezone, payload, next_at, last_run_id }) => (
                      <li
                        key={name}
                        className="flex flex-wrap items-center gap-x-4 gap-y-1 px-4 py-2 text-sm"
                      >
                        <span className="min-w-40 flex-1">
                          <bdi className="font-medium">{visible(workflow)}</bdi>
                          <span className="block font-mono text-faint text-xs">
                            {visible(cron)} {timezone ?? "UTC"}
                          </span>
                        </span>
                        <span className="text-soft">
                          {next_at === undefined ? (
                            "never again"
                          ) : (
                            <>
                              next <Moment at={next_at} />
                            </>
                          )}
                        </span>
                        {last_run_id === undefined ? null : (
                          <Link
                            to="/console/runs/$runId"
                            params={{ runId: last_run_id }}
                            className="text-accent underline"
                          >
                            last run
                          </Link>
                        )}
                        <StartRun workflows={[workflow]} label="Run now" payload={payload ?? {}} />
                        {payload === undefined ? null : (
                          <details className="w-full">
                            <summary className="cursor-pointer text-soft text-xs">Payload</summary>
                            <Code value={payload} label={`payload of ${name}`} />
                          </details>
                        )}
                      </li>
                    ))}
                </ul>
              </Panel>
            )
          }
        </Answer>
      </Body>
    </Page>
  );
}
