import { useEffect, useMemo, useState } from "react";
import {
  emptyTranscript,
  foldEvents,
  type HistoryPage,
  type KitClient,
  type KitEvent,
  type Transcript,
} from "../../../../src/client/index.ts";
import { asked, useClient } from "../../api/use-server.ts";
import {
  type Entry,
  joinEntries,
  type Picture,
  picturesIn,
  readHistory,
  readTranscript,
} from "./conversation.ts";

export interface SessionName {
  readonly agent: string;
  readonly id: string;
  readonly session: string;
}

export interface LiveConversation {
  readonly entries: readonly Entry[];
  readonly work: Transcript["state"];
  readonly state: "loading" | "live" | "broken" | "new";
  readonly error: unknown;
  /** Set if there are older messages. */
  readonly loadOlder: (() => Promise<void>) | undefined;
}

interface View {
  /** Oldest first. */
  readonly pages: readonly HistoryPage[];
  readonly live: Transcript;
  readonly pictures: ReadonlyMap<string, readonly Picture[]>;
  readonly state: LiveConversation["state"];
  readonly error: unknown;
}

const start: View = {
  pages: [],
  live: emptyTranscript,
  pictures: new Map(),
  state: "loading",
  error: undefined,
};
const pageSize = 60;

/**
 * A live session: the newest messages, then the events after them, each once. The page shows new events
 * once per frame, however many arrive.
 */
export function useConversation({ agent, id, session }: SessionName): LiveConversation {
  const client = useClient();
  const [view, setView] = useState(start);

  useEffect(() => {
    const leaving = new AbortController();
    setView(start);
    let waiting: KitEvent[] = [];
    let frame = 0;
    const show = (): void => {
      frame = 0;
      const events = waiting;
      waiting = [];
      setView((old) => ({ ...old, live: foldEvents(old.live, events) }));
    };
    const push = (event: KitEvent): void => {
      waiting.push(event);
      // A hidden tab gets no animation frames.
      if (frame === 0) frame = document.hidden ? window.setTimeout(show, 200) : requestAnimationFrame(show);
    };
    read(client, { agent, id, session }, { push, setView, signal: leaving.signal }).catch(
      (error: unknown) => {
        if (!leaving.signal.aborted) setView((old) => ({ ...old, state: "broken", error }));
      },
    );
    return () => {
      leaving.abort();
      cancelAnimationFrame(frame);
      clearTimeout(frame);
    };
  }, [client, agent, id, session]);

  const { pages, live, pictures } = view;
  const past = useMemo(
    () =>
      readHistory(
        pages.flatMap(({ messages }) => messages),
        pages.flatMap(({ ends = [] }) => ends),
      ),
    [pages],
  );
  const entries = useMemo(() => joinEntries(past, readTranscript(live, pictures)), [past, live, pictures]);
  const before = pages[0]?.next_before;
  const loadOlder = async (): Promise<void> => {
    const page = await asked(client, () =>
      client.agents.historyPage(agent, { id, session, limit: pageSize, before }),
    );
    setView((old) => ({ ...old, pages: [page, ...old.pages] }));
  };
  return {
    entries,
    work: live.state,
    state: view.state,
    error: view.error,
    loadOlder: before === undefined ? undefined : loadOlder,
  };
}

interface Sink {
  readonly push: (event: KitEvent) => void;
  readonly setView: (change: (old: View) => View) => void;
  readonly signal: AbortSignal;
}

async function read(
  client: KitClient,
  { agent, id, session }: SessionName,
  { push, setView, signal }: Sink,
): Promise<void> {
  const page = await asked(client, () =>
    client.agents.historyPage(agent, { id, session, limit: pageSize }, { signal }),
  ).catch((error: unknown) => {
    // The first message creates the session.
    if (isNotFound(error)) return undefined;
    throw error;
  });
  const live = { ...emptyTranscript, index: page?.event_index ?? 0 };
  setView(() => ({
    ...start,
    pages: page === undefined ? [] : [page],
    live,
    state: page === undefined ? "new" : "live",
  }));
  const withImages = new Set<string>();
  const showPictures = async (operation: string): Promise<void> => {
    const { messages } = await client.agents.historyPage(agent, { id, session, limit: pageSize }, { signal });
    const found = picturesIn(messages, operation);
    setView((old) => ({ ...old, pictures: new Map([...old.pictures, [operation, found]]) }));
  };
  for await (const event of client.agents.events(agent, { id, session, after: live.index }, { signal })) {
    push(event);
    if (event.type === "operation_start" && (event.images ?? 0) > 0) withImages.add(event.operation_id);
    // The history contains the message once the model is called.
    else if (event.type === "turn_request" && withImages.delete(event.operation_id))
      showPictures(event.operation_id).catch(() => undefined);
  }
}

function isNotFound(error: unknown): boolean {
  return error instanceof Error && "code" in error && error.code === "not_found";
}
