import type { TouchedSessionPage } from "../protocol/session-entry.ts";
import type { PruneBody, PrunedPage, SessionsQuery } from "../protocol/session-page.ts";
import type { CallOptions } from "./call-options.ts";
import { route } from "./route-call.ts";
import type { Transport } from "./transport.ts";

/** What a server keeps of its agents. */
export interface SessionsClient {
  /** In the order in which they were made. */
  list(query?: SessionsQuery, options?: CallOptions): Promise<TouchedSessionPage>;
  /**
   * Removes those of a page that nobody has touched for long; `next_cursor` goes on. Throws `invalid_request` for less than an
   * hour.
   */
  prune(body: PruneBody, options?: CallOptions): Promise<PrunedPage>;
}

export function createSessionsClient({ request }: Transport): SessionsClient {
  return {
    list: (query = {}, options) => request(route("GET /sessions", { query, options })),
    prune: (body, options) => request(route("POST /sessions/prune", { body, options, repeatable: true })),
  };
}
