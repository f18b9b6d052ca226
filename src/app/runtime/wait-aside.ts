import type { Approvals } from "../../agents/approvals/approvals.ts";
import type { HostService } from "./hosted-app.ts";

/** Approvals of an application: while a call waits for somebody's word, its service lets others work. */
export function waitAside(approvals: Approvals, service: () => HostService | undefined): Approvals {
  const { timeoutMs } = approvals;
  return {
    ...(timeoutMs === undefined ? {} : { timeoutMs }),
    request(request, signal, mayRest) {
      const ask = (stop: AbortSignal) => approvals.request(request, stop);
      const host = service();
      if (host === undefined) return ask(signal);
      return host.whileAside(ask, { key: request.approval_id, signal, mayRest });
    },
    decide: (approvalId, decision, within) => approvals.decide(approvalId, decision, within),
    list: (filter) => approvals.list(filter),
  };
}
