import type { ApprovalPage, ApprovalQuery } from "../protocol/approval.ts";
import type {
  DeliveryPage,
  DeliveryQuery,
  DispatchPage,
  DispatchQuery,
  DispatchRecord,
  RetriedPage,
  RetryManyBody,
} from "../protocol/dispatch.ts";
import type { PruneBody, PrunedPage, SessionPage, SessionsQuery } from "../protocol/session-page.ts";
import type { CallOptions } from "./call-options.ts";
import { route } from "./route-call.ts";
import type { Transport } from "./transport.ts";

/** Inputs that were handed over, and their outcome. */
export interface DispatchesClient {
  /** Newest first; `status: "failed"` are the dead letters. */
  list(query?: DispatchQuery, options?: CallOptions): Promise<DispatchPage>;
  /** Throws `not_found`. */
  get(dispatchId: string, options?: CallOptions): Promise<DispatchRecord>;
  /** Gives a dead letter its attempts again. Throws `not_found`, and `conflict` for one that is none. */
  retry(dispatchId: string, options?: CallOptions): Promise<DispatchRecord>;
  /** The same for a page of dead letters, of one agent or instance where they are named; `next_cursor` goes on. */
  retryAll(body?: RetryManyBody, options?: CallOptions): Promise<RetriedPage>;
  /** Takes back what waits, or aborts what runs. False when it had ended. */
  cancel(dispatchId: string, options?: CallOptions): Promise<boolean>;
}

export function createDispatchesClient({ request }: Transport): DispatchesClient {
  const params = (dispatch_id: string): { readonly dispatch_id: string } => ({ dispatch_id });
  return {
    list: (query = {}, options) => request(route("GET /dispatches", { query, options })),
    get: (id, options) => request(route("GET /dispatches/{dispatch_id}", { params: params(id), options })),
    retry: (id, options) =>
      request(route("POST /dispatches/{dispatch_id}/retry", { params: params(id), body: {}, options })),
    retryAll: (body = {}, options) => request(route("POST /dispatches/retry", { body, options })),
    async cancel(id, options) {
      const call = { params: params(id), body: {}, options, repeatable: true } as const;
      return (await request(route("POST /dispatches/{dispatch_id}/cancel", call))).cancelled;
    },
  };
}

/** The tool calls of all agents that wait for approval; `agents.approve` decides one. */
export interface ApprovalsClient {
  /** Oldest first. */
  list(query?: ApprovalQuery, options?: CallOptions): Promise<ApprovalPage>;
}

export function createApprovalsClient({ request }: Transport): ApprovalsClient {
  return {
    list: (query = {}, options) => request(route("GET /approvals", { query, options })),
  };
}

/** The sessions that a server keeps of its agents. */
export interface SessionsClient {
  /** In the order in which they were made, or the newest first. */
  list(query?: SessionsQuery, options?: CallOptions): Promise<SessionPage>;
  /**
   * Removes the sessions of a page that were not touched for long; `next_cursor` goes on. Throws `invalid_request` for less than an
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

/** Lists the deliveries of webhooks. */
export interface DeliveriesClient {
  /** Newest first: the last 1,000 since the server started. */
  list(query?: DeliveryQuery, options?: CallOptions): Promise<DeliveryPage>;
}

export function createDeliveriesClient({ request }: Transport): DeliveriesClient {
  return { list: (query = {}, options) => request(route("GET /deliveries", { query, options })) };
}
