import type { UseQueryResult } from "@tanstack/react-query";
import type { WaitingPage } from "../../../../src/client/index.ts";
import { useServer } from "../../api/use-server.ts";

/** How many items Home shows; the badge counts all. */
const mostItems = 5;

/** Reads the calls and runs that wait for a person, the oldest first: for the badge and for Home. */
export function useInbox(enabled = true): UseQueryResult<WaitingPage> {
  return useServer({
    key: ["waiting", "inbox"],
    ask: (client, signal) => client.waiting.list({ limit: mostItems }, { signal }),
    everyMs: 4_000,
    enabled,
  });
}
