import { type Approvals, notWaiting } from "../../agents/approvals/approvals.ts";
import { willResume } from "../../agents/log/resume.ts";
import type { WaitingCalls } from "../../engine/cluster.ts";

/**
 * Approvals that any node of a cluster lists and decides. A call waits in the memory of the node that works on it, and in a
 * row, where the decision is written: the first one counts, and one whose node has died is there for the node that asks again.
 */
export function createSharedApprovals(local: Approvals, calls: WaitingCalls): Approvals {
  calls.onDecided((approvalId, decision) => {
    // It may have ended in this very moment.
    local.decide(approvalId, decision).catch(() => undefined);
  });
  const { timeoutMs } = local;
  return {
    timeoutMs,
    async request(request, signal, maySuspend) {
      signal.throwIfAborted();
      const { approval_id } = request;
      const decided = await calls.add(request);
      if (decided !== undefined) return decided;
      try {
        const decision = await local.request(request, signal, maySuspend);
        // One that was written before the call expired counts: its sender was told so.
        return (await calls.remove(approval_id)) ?? decision;
      } catch (error) {
        // The resumed operation adds it again, here or on another node.
        const left = willResume(signal) ? calls.leave(approval_id) : calls.withdraw(approval_id);
        await left.catch(() => undefined);
        throw error;
      }
    },
    async decide(approvalId, decision, within = {}) {
      if (!(await calls.decide(approvalId, decision, within))) throw notWaiting();
    },
    list: async (filter = {}) => await calls.list(filter),
  };
}
