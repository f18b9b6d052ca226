import type { ReactNode } from "react";
import type { ListedSession, SessionPage } from "../../../../src/client/index.ts";
import { BarField } from "../../ui/chips.tsx";
import { Filter } from "../../ui/filter.tsx";
import { Listing, useList } from "../../ui/listing.tsx";
import { Notice } from "../../ui/states.tsx";
import { findSpan, TimeFilter, useSince } from "../../ui/time-filter.tsx";
import { SessionRow } from "./session-row.tsx";

const statuses = ["working", "waiting", "failed", "stopped", "idle"] as const;

/** The filters of a list of conversations, as the address holds them. */
export interface ConversationFilters {
  readonly q?: string | undefined;
  readonly status?: string | undefined;
  readonly since?: string | undefined;
}

interface BarProps {
  readonly filters: ConversationFilters;
  readonly onChange: (changed: ConversationFilters) => void;
}

/** The search field and the filters above a list of conversations. */
export function ConversationBar({ filters: { q, status, since }, onChange }: BarProps): ReactNode {
  return (
    <>
      <BarField
        label="Search conversations"
        value={q ?? ""}
        onSubmit={(text) => onChange({ q: text || undefined })}
      />
      <Filter
        label="Status"
        value={statuses.find((one) => one === status)}
        choices={statuses}
        onChange={(value) => onChange({ status: value })}
      />
      <TimeFilter value={findSpan(since)} onChange={(value) => onChange({ since: value })} />
    </>
  );
}

/** Conversations with all agents or with one, the last used first. */
export function ConversationList({
  agent,
  filters: { q, status, since: span },
}: {
  readonly agent?: string;
  readonly filters: ConversationFilters;
}): ReactNode {
  const chosen = statuses.find((one) => one === status);
  const since = useSince(findSpan(span));
  const list = useList<SessionPage>({
    key: ["sessions", "list", agent, q, chosen, since],
    // The session of a task belongs to the conversation that started it.
    ask: (client, { cursor, signal }) =>
      client.sessions.list(
        {
          agent,
          search: q,
          status: chosen,
          since,
          order: "recent",
          parents_only: true,
          count: cursor === undefined ? true : undefined,
          limit: 100,
          cursor,
        },
        { signal },
      ),
    everyMs: 5_000,
  });
  const isFiltered = (q ?? chosen ?? since) !== undefined;
  return (
    <Listing
      list={list}
      itemsIn={({ sessions }) => sessions}
      keyOf={(one: ListedSession) => `${one.agent}/${one.instance_id}/${one.session}`}
      label="Conversations"
      nouns={["conversation", "conversations"]}
      empty={
        <Notice icon="agents" title={isFiltered ? "No conversation matches" : "No conversations yet"}>
          {isFiltered
            ? "Other filters may find some."
            : "What is said to an agent here, over HTTP or by a workflow stands in this list."}
        </Notice>
      }
    >
      {(one) => <SessionRow session={one} hidesAgent={agent !== undefined} />}
    </Listing>
  );
}
