import type { ApprovalPage, ApprovalQuery } from "../protocol/approval.ts";
import type { CallOptions } from "./call-options.ts";
import { route } from "./route-call.ts";
import type { Transport } from "./transport.ts";

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
