import { Link, useNavigate, useParams } from "@tanstack/react-router";
import { type FormEvent, type ReactNode, useId, useState } from "react";
import type { ListedSession } from "../../../../src/client/index.ts";
import { isReadOnly } from "../../api/server.ts";
import { useServer } from "../../api/use-server.ts";
import { Button } from "../../ui/button.tsx";
import { Icon } from "../../ui/icons.tsx";
import { Body, Page, Panel } from "../../ui/page.tsx";
import { Answer, Notice } from "../../ui/states.tsx";
import { Status } from "../../ui/status.tsx";
import { Age } from "../../ui/time.tsx";

/** The agents of the project and their conversations. */
export function AgentsScreen(): ReactNode {
  const agents = useServer({
    key: ["agents"],
    ask: (client, signal) => client.agents.list({ signal }),
    everyMs: 15_000,
  });
  return (
    <Page title="Agents">
      <Body>
        <Answer query={agents}>
          {(list) =>
            list.length === 0 ? (
              <Notice icon="agents" title="There are no agents yet">
                A file in <code className="font-mono">src/agents</code> that exports{" "}
                <code className="font-mono">createAgent(…)</code> is one.
              </Notice>
            ) : (
              <ul className="grid gap-3 sm:grid-cols-2 xl:grid-cols-3">
                {list.map(({ name, path, dev_only, triggers }) => (
                  <li
                    key={name}
                    className="relative flex flex-col gap-1 rounded-lg border border-line bg-panel p-4 hover:border-line-strong"
                  >
                    <Link
                      to="/console/agents/$name"
                      params={{ name }}
                      className="font-medium after:absolute after:inset-0"
                    >
                      <bdi>{name}</bdi>
                    </Link>
                    <span className="truncate font-mono text-faint text-xs">{path}</span>
                    {dev_only === true || !triggers.webhook ? (
                      <span className="mt-1">
                        <Status value={dev_only === true ? "kit dev only" : "not declared"} tone="none" />
                      </span>
                    ) : null}
                  </li>
                ))}
              </ul>
            )
          }
        </Answer>
        <Panel title="Recent conversations">
          <SessionList />
        </Panel>
      </Body>
    </Page>
  );
}

/** One agent: its conversations, and a form to start one. */
export function AgentScreen(): ReactNode {
  const { name } = useParams({ from: "/console/agents/$name" });
  return (
    <Page title={name} crumbs={[{ label: "Agents", link: { to: "/console/agents" } }]}>
      <Body>
        {isReadOnly ? null : <Begin agent={name} />}
        <Panel title="Conversations">
          <SessionList agent={name} />
        </Panel>
      </Body>
    </Page>
  );
}

function Begin({ agent }: { readonly agent: string }): ReactNode {
  const field = useId();
  const navigate = useNavigate();
  const [id, setId] = useState("");
  const begin = (event: FormEvent): void => {
    event.preventDefault();
    const chosen = id.trim() === "" ? `chat-${Date.now().toString(36)}` : id.trim();
    void navigate({ to: "/console/agents/$name/$id", params: { name: agent, id: chosen } });
  };
  return (
    <form onSubmit={begin} className="flex flex-wrap items-end gap-2">
      <div className="flex min-w-56 flex-1 flex-col gap-1">
        <label htmlFor={field} className="text-soft text-sm">
          Id of the conversation, such as a ticket or a pull request
        </label>
        <input
          id={field}
          value={id}
          onChange={({ target }) => setId(target.value)}
          placeholder="a new one"
          maxLength={200}
          className="h-8 rounded-md border border-line-strong bg-panel px-2.5 font-mono text-sm placeholder:text-faint"
        />
      </div>
      <Button variant="solid" icon="agents" type="submit">
        Open
      </Button>
    </form>
  );
}

export function SessionList({
  agent,
  limit = 50,
  isWaited,
}: {
  readonly agent?: string;
  readonly limit?: number;
  readonly isWaited?: boolean;
}): ReactNode {
  const sessions = useServer({
    key: ["sessions", "list", agent, limit],
    ask: (client, signal) => client.sessions.list({ agent, order: "newest", limit }, { signal }),
    everyMs: 5_000,
  });
  return (
    <Answer query={sessions}>
      {({ sessions: all }) => {
        // The session of a task belongs to the conversation that started it.
        const list = all.filter(
          ({ parent, status }) => parent === undefined && (isWaited !== true || status !== "idle"),
        );
        return list.length === 0 ? (
          <Notice icon="agents" title="No conversations yet">
            What is said to an agent here, over HTTP or by a workflow stands in this list.
          </Notice>
        ) : (
          <ul className="divide-y divide-line">
            {list.map((one) => (
              <SessionRow key={`${one.agent}/${one.instance_id}/${one.session}`} session={one} />
            ))}
          </ul>
        );
      }}
    </Answer>
  );
}

export function SessionRow({
  session: { agent, instance_id, session, status, touched_at, position },
}: {
  readonly session: ListedSession;
}): ReactNode {
  return (
    <li>
      <Link
        to="/console/agents/$name/$id"
        params={{ name: agent, id: instance_id }}
        search={session === "default" ? {} : { session }}
        className="flex min-h-11 items-center gap-3 px-4 py-2 text-sm hover:bg-raised"
      >
        <span className="text-faint">
          <Icon name="agents" />
        </span>
        <span className="min-w-0 flex-1 truncate">
          <bdi className="font-medium">{instance_id}</bdi>
          <span className="text-soft">
            {" "}
            · <bdi>{agent}</bdi>
            {session === "default" ? null : (
              <>
                {" "}
                · <bdi>{session}</bdi>
              </>
            )}
          </span>
        </span>
        {status === "idle" ? null : <Status value={status} />}
        <span className="hidden text-faint text-xs tabular sm:inline">{position} entries</span>
        <span className="w-20 text-right text-faint text-xs">
          <Age at={touched_at} />
        </span>
      </Link>
    </li>
  );
}
