import type { Approvals } from "../../agents/approvals/approvals.ts";
import type { HostService } from "./hosted-app.ts";

/** Approvals of an application: while a call waits for somebody's word, its service lets others work. */
export function waitAside(approvals: Approvals, service: () => HostService | undefined): Approvals {
  const { timeoutMs } = approvals;
  return {
    ...(timeoutMs === undefined ? {} : { timeoutMs }),
    request(request, signal) {
      const wait = () => approvals.request(request, signal);
      return service()?.whileAside(wait) ?? wait();
    },
    decide: (approvalId, decision, within) => approvals.decide(approvalId, decision, within),
    list: (filter) => approvals.list(filter),
  };
}
