import { Link, useParams, useSearch } from "@tanstack/react-router";
import { type ReactNode, useEffect, useLayoutEffect, useRef, useState } from "react";
import { useServer } from "../../api/use-server.ts";
import { Button } from "../../ui/button.tsx";
import { Icon } from "../../ui/icons.tsx";
import { Page } from "../../ui/page.tsx";
import { ErrorNotice, Loading, Notice } from "../../ui/states.tsx";
import { Status } from "../../ui/status.tsx";
import { Composer } from "./composer.tsx";
import { EntryView } from "./entry-view.tsx";
import { useConversation } from "./use-conversation.ts";

/** How many entries are rendered; a button shows older ones. */
const drawnAtMost = 300;

/** An instance of an agent: the live conversation of one of its sessions. */
export function InstanceScreen(): ReactNode {
  const { name: agent, id } = useParams({ from: "/console/agents/$name/$id" });
  const { session = "default" } = useSearch({ from: "/console/agents/$name/$id" });
  const conversation = useConversation({ agent, id, session });
  const { entries, state, error, working, loadOlder } = conversation;
  const [drawn, setDrawn] = useState(drawnAtMost);
  const hidden = Math.max(0, entries.length - drawn);
  const scroll = useStickyScroll(entries);

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
          {working === undefined ? null : <Status value="working" />}
          <Sessions agent={agent} id={id} session={session} />
          <Link
            to="/console/agents/$name/$id/trace"
            params={{ name: agent, id }}
            className="inline-flex h-8 items-center gap-1.5 rounded-md border border-line bg-panel px-3 font-medium text-sm hover:bg-raised"
          >
            <Icon name="trace" />
            Rules and trace
          </Link>
        </>
      }
    >
      <div
        ref={scroll.box}
        onScroll={scroll.onScroll}
        tabIndex={0}
        role="region"
        aria-label="Conversation"
        className="min-h-0 flex-1 overflow-y-auto"
      >
        <div ref={scroll.content} className="mx-auto flex w-full max-w-3xl flex-col gap-4 px-4 py-6 sm:px-6">
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
          {entries.length === 0 && (state === "live" || state === "new") ? (
            <Notice icon="agents" title={`Nothing was said to ${agent} here yet`}>
              Write a message below. The conversation is kept under the id{" "}
              <code className="font-mono">{id}</code>.
            </Notice>
          ) : null}
          {entries.slice(hidden).map((entry) => (
            <div
              key={entry.id}
              className="min-w-0 [contain-intrinsic-size:auto_3rem] [content-visibility:auto]"
            >
              <EntryView entry={entry} agent={agent} instance={id} />
            </div>
          ))}
          {working !== undefined && entries.at(-1)?.kind === "user" ? (
            <p className="animate-pulse-soft text-faint text-sm">Thinking…</p>
          ) : null}
          {state === "broken" ? <ErrorNotice error={error} onRetry={() => location.reload()} /> : null}
        </div>
      </div>
      <Composer agent={agent} id={id} session={session} isWorking={working !== undefined} />
    </Page>
  );
}

/** Keeps the end in view while entries are added, unless the user has scrolled away from it. */
function useStickyScroll(entries: unknown): {
  readonly box: React.RefObject<HTMLDivElement | null>;
  readonly content: React.RefObject<HTMLDivElement | null>;
  readonly onScroll: () => void;
} {
  const box = useRef<HTMLDivElement>(null);
  const content = useRef<HTMLDivElement>(null);
  const isAtEnd = useRef(true);
  const toEnd = (): void => {
    if (isAtEnd.current && box.current !== null) box.current.scrollTop = box.current.scrollHeight;
  };
  // biome-ignore lint/correctness/useExhaustiveDependencies: the effect runs when the list of entries changes.
  useLayoutEffect(toEnd, [entries]);
  // biome-ignore lint/correctness/useExhaustiveDependencies: the observer reads the current value.
  useEffect(() => {
    const observer = new ResizeObserver(toEnd);
    if (content.current !== null) observer.observe(content.current);
    return () => observer.disconnect();
  }, []);
  return {
    box,
    content,
    onScroll() {
      const { scrollTop = 0, scrollHeight = 0, clientHeight = 0 } = box.current ?? {};
      isAtEnd.current = scrollHeight - scrollTop - clientHeight < 60;
    },
  };
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
