import type { ReactNode } from "react";
import { serverRoot } from "../../api/server.ts";
import { useServer } from "../../api/use-server.ts";
import { Body, Page, Panel } from "../../ui/page.tsx";
import { Answer } from "../../ui/states.tsx";

export function ServerScreen(): ReactNode {
  const health = useServer({
    key: ["health"],
    ask: (client, signal) => client.health({ signal }),
    everyMs: 10_000,
  });
  return (
    <Page title="Server">
      <Body>
        <Panel title="This server">
          <Answer query={health}>
            {({ version }) => (
              <dl className="grid grid-cols-[auto_1fr] gap-x-6 gap-y-2 p-4 text-sm">
                <dt className="text-soft">Address</dt>
                <dd className="font-mono">{serverRoot.href}</dd>
                <dt className="text-soft">Version</dt>
                <dd className="tabular">kit {version}</dd>
              </dl>
            )}
          </Answer>
        </Panel>
      </Body>
    </Page>
  );
}
