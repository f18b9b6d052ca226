import {
  type Approvals,
  checkEdited,
  createApprovals,
  isDetailed,
  notWaiting,
} from "../../agents/approvals/approvals.ts";
import { willResume } from "../../agents/log/suspension.ts";
import { linkSignals } from "../../base/abort.ts";
import type { Engine } from "../../engine/contract.ts";
import type { ApprovalDecision } from "../../protocol/approval.ts";
import { type Fences, type Owners, SoleFence, SoleOwner } from "../cluster/owners.ts";
import type { ServiceCluster } from "../cluster/service-cluster.ts";
import type { RuntimeParts } from "../runtime/agent-factory.ts";
import { isOverLimit } from "./caller-calls.ts";
import type { WorkSlots } from "./work-slots.ts";

/**
 * Adapts the parts to the engine: only this function asks whether other machines share its work. In a cluster, the events of the
 * returned engine are those of all nodes. A project of one machine does not load the code for a cluster.
 */
export async function toSharedParts(
  runtimeParts: RuntimeParts,
  {
    engine,
    nodeAddress: address,
    slots,
  }: {
    readonly engine: Engine;
    readonly nodeAddress?: string | undefined;
    readonly slots: Pick<WorkSlots, "workOf">;
  },
) {
  const { cluster, events, capabilities } = engine;
  const { store } = runtimeParts;
  const fences: Fences = capabilities.distributed
    ? new (await import("./fenced-store.ts")).FencedStore(store)
    : new SoleFence(store, capabilities);
  const local = runtimeParts.approvals ?? createApprovals();
  const approvals = createSharedApprovals(local, { engine, slots });
  let nodes: ServiceCluster | undefined;
  if (cluster !== undefined) {
    const { ServiceCluster } = await import("../cluster/service-cluster.ts");
    nodes = new ServiceCluster({ cluster, events, address });
  }
  const owners: Owners = nodes ?? new SoleOwner(events);
  return {
    parts: {
      ...runtimeParts,
      store: fences.store,
      // Without approvals, calls that need one are denied at once.
      approvals: runtimeParts.approvals && approvals,
    },
    engine: nodes === undefined ? engine : { ...engine, events: nodes.events },
    approvals,
    nodes,
    owners,
    fences,
  };
}

/**
 * Approvals that each process of the engine's store can list and decide. A call waits in the memory of the process that works
 * on it and in a row of the engine, where the first decision counts: the process that resumes the operation finds it there.
 */
function createSharedApprovals(
  local: Approvals,
  { engine, slots }: { readonly engine: Engine; readonly slots: Pick<WorkSlots, "workOf"> },
): Approvals {
  const { waitingCalls: calls } = engine;
  if (calls === undefined) return local;
  const { timeoutMs } = local;
  return {
    timeoutMs,
    async request(asked, signal, { onWaiting } = {}) {
      if (willResume(signal)) throw signal.reason;
      const work = slots.workOf(asked);
      const dispatch_id = work?.resumes?.startsWith("dispatch_") === true ? work.resumes : undefined;
      const request = dispatch_id === undefined ? asked : { ...asked, dispatch_id };
      const decided = Promise.withResolvers<ApprovalDecision>();
      // Also with an aborted signal: the call may have a row of an earlier attempt, which ends here.
      const wait = await calls.add({ request, work }, decided.resolve);
      if (wait.decision !== undefined) return wait.decision;
      if (await isOverLimit(calls, request))
        return await wait.settle({ approved: false, reason: "Too many calls wait for their callers." });
      if (!signal.aborted) onWaiting?.();
      const link = linkSignals([signal]);
      let decision: ApprovalDecision;
      try {
        decision = await Promise.race([decided.promise, local.request(request, link.signal)]);
      } catch (error) {
        if (willResume(signal)) wait.leave();
        else await wait.withdraw().catch(() => undefined);
        throw error;
      } finally {
        link.abort(new Error("The call was decided."));
        link.unlink();
      }
      return await wait.settle(decision);
    },
    async decide(approvalId, decision, within = {}) {
      if (isDetailed(approvalId, decision)) {
        const waiting = await calls.list(within);
        const request = waiting.find(({ approval_id }) => approval_id === approvalId);
        if (request !== undefined) checkEdited(request, decision);
      }
      const counted = await calls.decide(approvalId, decision, within);
      if (counted?.isFirst !== true) throw notWaiting(counted?.decision);
    },
    list: (filter = {}) => calls.list(filter),
  };
}
