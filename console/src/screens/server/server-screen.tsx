import type { ReactNode } from "react";
import { serverRoot } from "../../api/server.ts";
import { useServer } from "../../api/use-server.ts";
import { Chip } from "../../ui/chips.tsx";
import { Facts } from "../../ui/facts.tsx";
import { LongText } from "../../ui/long-text.tsx";
import { Body, Page, Panel } from "../../ui/page.tsx";
import { Answer } from "../../ui/states.tsx";
import { Age } from "../../ui/time.tsx";
import { FindingList } from "./finding-list.tsx";

/** The server's configuration and the doctor's findings, read-only. */
export function ServerScreen(): ReactNode {
  const server = useServer({
    key: ["server"],
    ask: (client, signal) => client.server({ signal }),
    everyMs: 30_000,
  });
  return (
    <Page title="Server">
      <Body>
        <Answer query={server}>
          {(state) => (
            <>
              <Panel title="Findings of the doctor" count={state.findings.length}>
                <FindingList findings={state.findings} />
              </Panel>
              <div className="grid items-start gap-6 lg:grid-cols-2">
                <Panel title="This server">
                  <Facts
                    facts={{
                      Address: <span className="font-mono text-xs">{serverRoot.href}</span>,
                      Version: `kit ${state.version}, Node ${state.node}`,
                      Started: <Age at={state.started_at} />,
                      Console: state.console === "read" ? "looks only" : "looks and changes",
                      Agents:
                        state.expose === "all" ? "all are served" : "those are served whose file says so",
                      "Function auth": state.has_auth ? "set" : "none",
                      "Function authorize": state.has_authorize
                        ? "set"
                        : "none: each caller may do everything",
                      "API keys":
                        state.keys.length === 0 ? (
                          "none are asked for"
                        ) : (
                          <span className="flex flex-wrap gap-1">
                            {state.keys.map((key) => (
                              <Chip key={key}>
                                <span className="font-mono">{key}</span>
                              </Chip>
                            ))}
                          </span>
                        ),
                    }}
                  />
                </Panel>
                <Panel title="Limits">
                  <Facts
                    facts={Object.fromEntries(
                      Object.entries(state.limits).map(([name, value]) => [
                        name.replaceAll("_", " "),
                        <span key={name} className="tabular">
                          {value.toLocaleString()}
                        </span>,
                      ]),
                    )}
                  />
                </Panel>
              </div>
              {state.configuration === undefined ? null : (
                <Panel title="Configuration, without its secrets">
                  <div className="p-3">
                    <LongText value={state.configuration} label="configuration" />
                  </div>
                </Panel>
              )}
            </>
          )}
        </Answer>
      </Body>
    </Page>
  );
}
