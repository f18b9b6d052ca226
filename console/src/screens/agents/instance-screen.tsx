import { Link, useParams, useSearch } from "@tanstack/react-router";
import { type ReactNode, useState } from "react";
import { isReadOnly } from "../../api/server.ts";
import { useServer } from "../../api/use-server.ts";
import { Button } from "../../ui/button.tsx";
import { Icon } from "../../ui/icons.tsx";
import { Page } from "../../ui/page.tsx";
import { ErrorNotice, Loading } from "../../ui/states.tsx";
import { Status } from "../../ui/status.tsx";
import { Announcer } from "./announcer.tsx";
import { Composer } from "./composer.tsx";
import { findMessage } from "./conversation.ts";
import { EntryView } from "./entry-view.tsx";
import { Starters } from "./starters.tsx";
import { useConversation } from "./use-conversation.ts";
import { useFollow } from "./use-follow.ts";
import { useSend } from "./use-send.ts";

/** How many entries are rendered; a button shows older ones. */
const drawnAtMost = 300;

const workNames = {
  idle: "idle",
  working: "working",
  waiting: "waiting for you",
  retrying: "trying again",
} as const;

/** An instance of an agent: the live conversation of one of its sessions. */
export function InstanceScreen(): ReactNode {
  const { name: agent, id } = useParams({ from: "/console/agents/$name/$id" });
  const { session = "default" } = useSearch({ from: "/console/agents/$name/$id" });
  const conversation = useConversation({ agent, id, session });
  const { entries, state, error, work, loadOlder } = conversation;
  const isWorking = work !== "idle";
  const [drawn, setDrawn] = useState(drawnAtMost);
  const hidden = Math.max(0, entries.length - drawn);
  const isNew = entries.length === 0 && (state === "live" || state === "new");
  const last = entries.at(-1);
  const scroll = useFollow(entries.findLast(({ kind }) => kind === "user")?.id, entries);
  const sender = useSend({ agent, id, session });
  const retry = (operation_id: string): void => {
    const sent = findMessage(entries, operation_id);
    if (sent !== undefined) void sender.send(sent.text, sent.pictures);
  };

  return (
    <Page
      title={id}
      isFixed
      crumbs={[
        { label: "Agents", link: { to: "/console/agents" } },
        { label: agent, link: { to: "/console/agents/$name", params: { name: agent } } },
      ]}
      actions={
        <>
          {/* Always there, so that the header keeps its height when work begins. */}
          <span className="flex min-w-26 justify-end">
            {isWorking ? <Status value={workNames[work]} /> : null}
          </span>
          <Sessions agent={agent} id={id} session={session} />
          <Link
            to="/console/agents/$name/$id/trace"
            params={{ name: agent, id }}
            className="inline-flex h-8 items-center gap-1.5 rounded-md border border-line bg-panel px-3 font-medium text-sm hover:bg-raised"
          >
            <Icon name="trace" />
            <span className="max-sm:sr-only">Rules and trace</span>
          </Link>
        </>
      }
    >
      <Announcer agent={agent} conversation={conversation} />
      <div className="relative flex min-h-0 flex-1 flex-col">
        <div
          ref={scroll.box}
          onScroll={scroll.onScroll}
          tabIndex={0}
          role="region"
          aria-label="Conversation"
          className="min-h-0 flex-1 overflow-y-auto [overflow-anchor:none]"
        >
          <div
            ref={scroll.content}
            role="log"
            aria-label="Messages"
            aria-busy={isWorking}
            className="mx-auto flex w-full max-w-3xl flex-col gap-4 px-4 py-6 sm:px-6"
          >
            {state === "loading" ? <Loading /> : null}
            {hidden > 0 || loadOlder !== undefined ? (
              <div className="text-center">
                <Button
                  variant="quiet"
                  onClick={() => (hidden > 0 ? setDrawn((count) => count + drawnAtMost) : void loadOlder?.())}
                >
                  Show earlier messages
                </Button>
              </div>
            ) : null}
            {isNew ? (
              <Starters agent={agent} id={id} onAsk={(question) => void sender.send(question)} />
            ) : null}
            {entries.slice(hidden).map((entry) => (
              <div
                key={entry.id}
                data-message={entry.kind === "user" ? true : undefined}
                className="min-w-0 [contain-intrinsic-size:auto_3rem] [content-visibility:auto]"
              >
                <EntryView
                  entry={entry}
                  agent={agent}
                  instance={id}
                  // Only what was said last can be said again.
                  onRetry={entry === last && !isReadOnly ? retry : undefined}
                />
              </div>
            ))}
            {isWorking && last?.kind === "user" ? (
              <p className="animate-pulse-soft text-faint text-sm">Thinking…</p>
            ) : null}
            {state === "broken" ? <ErrorNotice error={error} onRetry={() => location.reload()} /> : null}
          </div>
        </div>
        {scroll.hasMore ? (
          <div className="absolute inset-x-0 bottom-3 text-center">
            <Button icon="down" onClick={scroll.scrollToEnd}>
              {work === "waiting" ? "Waiting for you, below" : "To the end"}
            </Button>
          </div>
        ) : null}
      </div>
      <Composer agent={agent} id={id} session={session} isWorking={isWorking} isNew={isNew} sender={sender} />
    </Page>
  );
}

/** The other sessions of the instance, if it has several. */
function Sessions({
  agent,
  id,
  session,
}: {
  readonly agent: string;
  readonly id: string;
  readonly session: string;
}): ReactNode {
  const sessions = useServer({
    key: ["sessions", agent, id],
    ask: (client, signal) =>
      client.sessions.list({ agent, instance_id: id, order: "newest", limit: 50 }, { signal }),
    everyMs: 10_000,
  });
  const names = (sessions.data?.sessions ?? []).map((one) => one.session);
  if (names.length < 2) return null;
  return (
    <nav aria-label="Sessions" className="flex max-w-full gap-1 overflow-x-auto">
      {names.map((name) => (
        <Link
          key={name}
          to="/console/agents/$name/$id"
          params={{ name: agent, id }}
          search={name === "default" ? {} : { session: name }}
          className={`h-8 max-w-40 truncate rounded-md px-2.5 text-sm leading-8 ${name === session ? "bg-raised font-medium" : "text-soft hover:bg-raised"}`}
        >
          <bdi>{name}</bdi>
        </Link>
      ))}
    </nav>
  );
}
