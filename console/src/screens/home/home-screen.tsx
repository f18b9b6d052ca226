import type { ReactNode } from "react";
import { useServer } from "../../api/use-server.ts";
import { Body, Page, Panel } from "../../ui/page.tsx";
import { Answer } from "../../ui/states.tsx";

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
          {({ specs, guidelines, agents = [], workflows = [] }) => (
            <Panel title="This project">
              <dl className="grid grid-cols-2 gap-4 p-4 md:grid-cols-4">
                <Figure label="Specs" value={specs} />
                <Figure label="Guidelines" value={guidelines} />
                <Figure label="Agents" value={agents.length} />
                <Figure label="Workflows" value={workflows.length} />
              </dl>
            </Panel>
          )}
        </Answer>
      </Body>
    </Page>
  );
}

function Figure({ label, value }: { readonly label: string; readonly value: number }): ReactNode {
  return (
    <div className="flex flex-col-reverse">
      <dt className="text-soft text-sm">{label}</dt>
      <dd className="font-semibold text-xl tabular">{value.toLocaleString()}</dd>
    </div>
  );
}
