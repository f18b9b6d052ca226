import type { ApprovalPage, ApprovalQuery } from "../protocol/approval.ts";
import type {
  CancelledPage,
  CancelManyBody,
  DeliveryPage,
  DeliveryQuery,
  DispatchPage,
  DispatchQuery,
  DispatchRecord,
  RetriedPage,
  RetryManyBody,
} from "../protocol/dispatch.ts";
import type { BegunLogin } from "../protocol/login.ts";
import type { PruneBody, PrunedPage, SessionPage, SessionsQuery } from "../protocol/session-page.ts";
import type { WaitingPage, WaitingQuery } from "../protocol/waiting.ts";
import type { CallOptions } from "./call-options.ts";
import type { Transport } from "./transport.ts";

/** Reads and changes dispatched inputs. */
export interface DispatchesClient {
  /** Lists dispatches, newest first; those with `status: "failed"` are dead letters. */
  list(query?: DispatchQuery, options?: CallOptions): Promise<DispatchPage>;
  /** Throws `not_found`. */
  get(dispatchId: string, options?: CallOptions): Promise<DispatchRecord>;
  /** Retries a dead letter with new attempts. Throws `not_found`, and `conflict` for another dispatch. */
  retry(dispatchId: string, options?: CallOptions): Promise<DispatchRecord>;
  /** Retries the dead letters with these ids, or a page of those that match; continue with `next_cursor`. */
  retryAll(body?: RetryManyBody, options?: CallOptions): Promise<RetriedPage>;
  /** Cancels a waiting dispatch, or aborts a running one. Returns false if it had already ended. */
  cancel(dispatchId: string, options?: CallOptions): Promise<boolean>;
  /** Cancels the dispatches with these ids, or a page of the open ones that match; continue with `next_cursor`. */
  cancelAll(body: CancelManyBody, options?: CallOptions): Promise<CancelledPage>;
}

export function createDispatchesClient({ request }: Transport): DispatchesClient {
  const params = (dispatch_id: string): { readonly dispatch_id: string } => ({ dispatch_id });
  return {
    list: (query = {}, options) => request("GET /dispatches", { query, options }),
    get: (id, options) => request("GET /dispatches/{dispatch_id}", { params: params(id), options }),
    retry: (id, options) =>
      request("POST /dispatches/{dispatch_id}/retry", { params: params(id), body: {}, options }),
    retryAll: (body = {}, options) => request("POST /dispatches/retry", { body, options }),
    async cancel(id, options) {
      const call = { params: params(id), body: {}, options, repeatable: true } as const;
      return (await request("POST /dispatches/{dispatch_id}/cancel", call)).cancelled;
    },
    cancelAll: (body, options) => request("POST /dispatches/cancel", { body, options, repeatable: true }),
  };
}

/** Lists the tool calls of all agents that wait for approval; decide with `agents.approve`. */
export interface ApprovalsClient {
  /** Oldest first. */
  list(query?: ApprovalQuery, options?: CallOptions): Promise<ApprovalPage>;
}

export function createApprovalsClient({ request }: Transport): ApprovalsClient {
  return {
    list: (query = {}, options) => request("GET /approvals", { query, options }),
  };
}

/** Lists what waits for a person: tool calls for approval, and runs for signals. */
export interface WaitingClient {
  /** Oldest first; `total` is the number of items on all pages. */
  list(query?: WaitingQuery, options?: CallOptions): Promise<WaitingPage>;
  /**
   * Begins a login at an MCP server. Only for pages of the server itself, whose browser gets the cookie that the login needs: open
   * `url` there.
   */
  beginLogin(server: string, options?: CallOptions): Promise<BegunLogin>;
}

export function createWaitingClient({ request }: Transport): WaitingClient {
  return {
    list: (query = {}, options) => request("GET /waiting", { query, options }),
    beginLogin: (server, options) =>
      request("POST /logins/{server}", { params: { server }, body: {}, options }),
  };
}

/** Lists and removes the sessions of a server's agents. */
export interface SessionsClient {
  /** Lists sessions with their titles, states and costs, by their creation or their last use. */
  list(query?: SessionsQuery, options?: CallOptions): Promise<SessionPage>;
  /**
   * Removes the old sessions of a page; continue with `next_cursor`. Throws `invalid_request` for an age below an
   * hour.
   */
  prune(body: PruneBody, options?: CallOptions): Promise<PrunedPage>;
}

export function createSessionsClient({ request }: Transport): SessionsClient {
  return {
    list: (query = {}, options) => request("GET /sessions", { query, options }),
    prune: (body, options) => request("POST /sessions/prune", { body, options, repeatable: true }),
  };
}

/** Lists the deliveries of webhooks. */
export interface DeliveriesClient {
  /** Lists the last 1,000 deliveries since the server started, newest first. */
  list(query?: DeliveryQuery, options?: CallOptions): Promise<DeliveryPage>;
}

export function createDeliveriesClient({ request }: Transport): DeliveriesClient {
  return { list: (query = {}, options) => request("GET /deliveries", { query, options }) };
}
