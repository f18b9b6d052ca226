import type { ReactNode } from "react";
import { useServer } from "../../api/use-server.ts";
import { Chip } from "../../ui/chips.tsx";
import { Body, Page, Panel } from "../../ui/page.tsx";
import { Answer, Notice } from "../../ui/states.tsx";
import { GuidelineTabs } from "./guideline-tabs.tsx";

/** Duplicates, contradictions, globs without a file, rules that others shadow. */
export function LintScreen(): ReactNode {
  const lint = useServer({
    key: ["guideline-lint"],
    ask: (client, signal) => client.guidelines.lint({ signal }),
  });
  return (
    <Page
      title="Lint"
      crumbs={[{ label: "Guidelines", link: { to: "/console/guidelines" } }]}
      bar={<GuidelineTabs />}
    >
      <Body>
        <Answer query={lint}>
          {(found) =>
            found.length === 0 ? (
              <Notice icon="check" title="The rules agree">
                No duplicate, no contradiction, no pattern without a file.
              </Notice>
            ) : (
              <Panel title="Findings" count={found.length}>
                <ul className="divide-y divide-line">
                  {found.slice(0, 500).map(({ severity, rule, message, path, line = 1, id = "" }) => (
                    <li
                      key={`${path} ${line} ${rule} ${id} ${message}`}
                      className="flex flex-wrap items-baseline gap-x-3 gap-y-1 px-4 py-2 text-sm"
                    >
                      <Chip tone={severity === "error" ? "bad" : "warn"}>{rule}</Chip>
                      <span className="min-w-0 flex-1 foreign">{message}</span>
                      <bdi className="w-full font-mono text-faint text-xs foreign">{`${path}:${line}`}</bdi>
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
