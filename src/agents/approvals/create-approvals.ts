import { longestTimerMs } from "../../base/clock.ts";
import { KitError } from "../../base/kit-error.ts";
import type { ApprovalDecision, ApprovalRequest } from "../../protocol/approval.ts";
import type { ApprovalFilter, Approvals } from "./approvals.ts";

export interface ApprovalsOptions {
  /** Milliseconds before a call that nobody decided on is denied; default: it waits as long as it takes. */
  readonly timeoutMs?: number;
  /** Calls that may wait at once; one more is denied. Default 10,000. */
  readonly maxWaiting?: number;
}

const defaultMaxWaiting = 10_000;

interface Waiting {
  readonly request: ApprovalRequest;
  decide(decision: ApprovalDecision): void;
}

/** Creates a place where calls wait in this process's memory. */
export function createApprovals(options: ApprovalsOptions = {}): Approvals {
  const maxWaiting = options.maxWaiting ?? defaultMaxWaiting;
  const waiting = new Map<string, Waiting>();
  return {
    ...(options.timeoutMs === undefined ? {} : { timeoutMs: options.timeoutMs }),
    async request(request, signal) {
      signal.throwIfAborted();
      if (waiting.size >= maxWaiting) {
        return { approved: false, reason: `${maxWaiting} calls are waiting for approval already.` };
      }
      return new Promise((resolve, reject) => {
        const end = (): void => {
          if (waiting.get(request.approval_id) === own) waiting.delete(request.approval_id);
          clearTimeout(timer);
          signal.removeEventListener("abort", leave);
        };
        const leave = (): void => {
          end();
          reject(signal.reason);
        };
        const own: Waiting = {
          request,
          decide(decision) {
            end();
            resolve(decision);
          },
        };
        const expires = request.expires_at === undefined ? undefined : Date.parse(request.expires_at);
        let timer: ReturnType<typeof setTimeout> | undefined;
        const watch = (until: number): void => {
          const left = until - Date.now();
          if (left <= 0) own.decide({ approved: false, reason: "Nobody approved it in time." });
          else timer = setTimeout(watch, Math.min(left, longestTimerMs), until);
        };
        signal.addEventListener("abort", leave, { once: true });
        waiting.set(request.approval_id, own);
        if (expires !== undefined) watch(expires);
      });
    },
    async decide(approvalId, decision, within = {}) {
      const found = waiting.get(approvalId);
      if (found === undefined || !fits(found.request, within)) throw notWaiting();
      found.decide(decision);
    },
    list: async (filter = {}) =>
      [...waiting.values()].flatMap(({ request }) => (fits(request, filter) ? [request] : [])),
  };
}

function fits(request: ApprovalRequest, filter: ApprovalFilter): boolean {
  const { agent, instance_id, session } = filter;
  return (
    (agent === undefined || agent === request.agent) &&
    (instance_id === undefined || instance_id === request.instance_id) &&
    (session === undefined || session === request.session)
  );
}

export function notWaiting(): KitError {
  return new KitError({
    code: "not_found",
    message: "There is no such call waiting for approval.",
    hint: "It was decided, has expired or was aborted: list what waits.",
  });
}
