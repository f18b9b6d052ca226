import { Link } from "@tanstack/react-router";
import type { ReactNode } from "react";
import { useServer } from "../../api/use-server.ts";
import { Chip } from "../../ui/chips.tsx";
import { Body, Page, Panel } from "../../ui/page.tsx";
import { Answer, Notice } from "../../ui/states.tsx";
import { SpecTabs } from "./spec-tabs.tsx";

/** More problems than these are counted only. */
const most = 500;

/** The problems of the specs, and those that fell behind their code. */
export function ProblemsScreen(): ReactNode {
  const diagnostics = useServer({
    key: ["diagnostics"],
    ask: (client, signal) => client.specs.diagnostics({ signal }),
  });
  const stale = useServer({
    key: ["stale"],
    ask: (client, signal) => client.specs.stale({ limit: 200 }, { signal }),
  });
  return (
    <Page title="Problems" crumbs={[{ label: "Specs", link: { to: "/console/specs" } }]} bar={<SpecTabs />}>
      <Body>
        <Panel title="Fell behind their code" count={stale.data?.total_count}>
          <Answer query={stale}>
            {({ stale: blocks, notes }) => (
              <>
                {notes.map((note) => (
                  <p key={note} className="px-4 py-2 text-soft text-sm foreign">
                    {note}
                  </p>
                ))}
                {blocks.length === 0 ? (
                  <p className="px-4 py-3 text-soft text-sm">No spec is older than the code that it names.</p>
                ) : null}
                <ul className="divide-y divide-line">
                  {blocks.map(({ id, title, files, updated_at }) => (
                    <li key={id} className="flex flex-col gap-1 px-4 py-2 text-sm">
                      <Link
                        to="/console/specs/$id"
                        params={{ id }}
                        className="text-accent hover:underline foreign"
                      >
                        {title}
                      </Link>
                      <p className="text-faint text-xs foreign">
                        {`Last changed ${updated_at.slice(0, 10)}; since then `}
                        {files
                          .map(
                            ({ path, changed_at }) =>
                              `${path} (${changed_at?.slice(0, 10) ?? "not committed"})`,
                          )
                          .join(", ")}
                      </p>
                    </li>
                  ))}
                </ul>
              </>
            )}
          </Answer>
        </Panel>
        <Panel title="Diagnostics" count={diagnostics.data?.length}>
          <Answer query={diagnostics}>
            {(found) =>
              found.length === 0 ? (
                <Notice icon="check" title="Nothing is wrong">
                  All specs of this repository can be read.
                </Notice>
              ) : (
                <ul className="divide-y divide-line">
                  {found.slice(0, most).map(({ severity, rule, message, path, line = 1, field = "" }) => (
                    <li
                      key={`${path} ${line} ${rule} ${field} ${message}`}
                      className="flex flex-wrap items-baseline gap-x-3 gap-y-1 px-4 py-2 text-sm"
                    >
                      <Chip tone={severity === "error" ? "bad" : "warn"}>{rule}</Chip>
                      <span className="min-w-0 flex-1 foreign">{message}</span>
                      <bdi className="w-full font-mono text-faint text-xs foreign">{`${path}:${line}`}</bdi>
                    </li>
                  ))}
                  {found.length > most ? (
                    <li className="px-4 py-2 text-soft text-sm">
                      {(found.length - most).toLocaleString()} more; kit specs validate lists all.
                    </li>
                  ) : null}
                </ul>
              )
            }
          </Answer>
        </Panel>
      </Body>
    </Page>
  );
}
