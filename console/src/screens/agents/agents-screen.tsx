import { Link, useNavigate, useParams, useSearch } from "@tanstack/react-router";
import type { ReactNode } from "react";
import { useServer } from "../../api/use-server.ts";
import { Page } from "../../ui/page.tsx";
import { Answer, Notice } from "../../ui/states.tsx";
import { Status } from "../../ui/status.tsx";
import { BeginConversation } from "./begin-conversation.tsx";
import { ConversationBar, ConversationList } from "./conversation-list.tsx";

/** The agents of the project, and the conversations with all of them. */
export function AgentsScreen(): ReactNode {
  const filters = useSearch({ from: "/console/agents" });
  const navigate = useNavigate({ from: "/console/agents" });
  const agents = useServer({
    key: ["agents"],
    ask: (client, signal) => client.agents.list({ signal }),
    everyMs: 15_000,
  });
  return (
    <Page
      title="Agents"
      isFixed
      bar={
        <ConversationBar
          filters={filters}
          onChange={(changed) => void navigate({ search: (old) => ({ ...old, ...changed }), replace: true })}
        />
      }
    >
      <Answer query={agents}>
        {(list) =>
          list.length === 0 ? (
            <Notice icon="agents" title="There are no agents yet">
              A file in <code className="font-mono">src/agents</code> that exports{" "}
              <code className="font-mono">createAgent(…)</code> is one.
            </Notice>
          ) : (
            <>
              <ul
                aria-label="Agents"
                tabIndex={0}
                className="flex shrink-0 gap-3 overflow-x-auto border-line border-b px-4 py-3 sm:px-6"
              >
                {list.map(({ name, path, dev_only, triggers }) => (
                  <li
                    key={name}
                    className="relative flex w-52 shrink-0 flex-col rounded-lg border border-line bg-panel px-3 py-2 hover:border-line-strong"
                  >
                    <span className="flex items-center gap-2">
                      <Link
                        to="/console/agents/$name"
                        params={{ name }}
                        className="min-w-0 truncate font-medium after:absolute after:inset-0"
                      >
                        <bdi>{name}</bdi>
                      </Link>
                      {dev_only === true || !triggers.webhook ? (
                        <Status value={dev_only === true ? "kit dev only" : "not declared"} tone="none" />
                      ) : null}
                    </span>
                    <span className="truncate font-mono text-faint text-xs">{path}</span>
                  </li>
                ))}
              </ul>
              <ConversationList filters={filters} />
            </>
          )
        }
      </Answer>
    </Page>
  );
}

/** One agent: a way to talk to it, and its conversations. */
export function AgentScreen(): ReactNode {
  const { name } = useParams({ from: "/console/agents/$name" });
  const filters = useSearch({ from: "/console/agents/$name" });
  const navigate = useNavigate({ from: "/console/agents/$name" });
  return (
    <Page
      title={name}
      crumbs={[{ label: "Agents", link: { to: "/console/agents" } }]}
      isFixed
      bar={
        <ConversationBar
          filters={filters}
          onChange={(changed) => void navigate({ search: (old) => ({ ...old, ...changed }), replace: true })}
        />
      }
    >
      <div className="border-line border-b px-4 py-3 empty:hidden sm:px-6">
        <BeginConversation agent={name} />
      </div>
      <ConversationList agent={name} filters={filters} />
    </Page>
  );
}
